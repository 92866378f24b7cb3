"""The claims of timm and vision-docs on records that make each hold, fail, and untellable."""

from __future__ import annotations

import pytest
from doubles.synthetic import timed

import experiments
from experiments.evidence import Evidence, Records
from experiments.spec import PUBLISHED, Verdict

HOLDS, FAILS, UNTOLD = Verdict.HOLDS, Verdict.FAILS, Verdict.UNTOLD


def verdict(table: str, text: str, records: list[dict]) -> Verdict:
    experiment = experiments.get(table)
    (claim,) = [claim for claim in experiment.claims if claim.sentence.startswith(text)]
    return experiment.answers(claim, Evidence(Records(records)))["alpha graph"].verdict


def images(workload: str, gains: dict[int, float], **options) -> list[dict]:
    """A workload at batches, with the share of time that the graph saves of each in percent."""
    shared = {"workload": workload, "device": "gpu:0", "parameters": {"image": 224, "layout": "nchw"}}
    records = []
    for batch, gain in gains.items():
        records += [timed(9.0, batch_size=batch, **shared), timed(9.0, gain, batch_size=batch, **shared, **options)]
    return records


@pytest.mark.parametrize(("gain", "expected"), [(48.7, HOLDS), (20, FAILS), (46, UNTOLD)])
def test_resnet_is_twice_as_fast(gain, expected):
    assert verdict("timm", "Compiled, ResNet-50", images("resnet50", {1024: gain})) == expected


@pytest.mark.parametrize(("gain", "expected"), [(10.7, HOLDS), (30, FAILS), (6.5, UNTOLD)])
def test_a_vision_transformer_gains_little(gain, expected):
    assert verdict("timm", "Compiled, ViT-B/16", images("vit-b16", {1024: gain})) == expected


def test_eager_with_channels_last_is_no_evidence_for_channels_first():
    records = [{**r, "parameters": r["parameters"].replace("nchw", "nhwc")} for r in images("resnet50", {1024: 48.7})]
    assert verdict("timm", "Compiled, ResNet-50", records) == UNTOLD


@pytest.mark.parametrize(("gains", "expected"), [({1: 20}, HOLDS), ({1: 40}, FAILS), ({1: 20, 4: 30}, UNTOLD)])
def test_up_to_30_percent_are_saved(gains, expected):
    assert verdict("vision-docs", "Compiling saves up to 30 %", images("resnet50", gains)) == expected


@pytest.mark.parametrize("model", ["vit-b16", "resnet50"])
@pytest.mark.parametrize(
    ("gains", "expected"),
    [({1: 30, 16: 10}, HOLDS), ({1: 10, 16: 30}, FAILS), ({1: 10, 16: 9.9}, UNTOLD), ({1: 9}, UNTOLD)],
)
def test_less_is_saved_in_large_batches(model, gains, expected):
    text = "It saves less of " + {"vit-b16": "ViT-B/16", "resnet50": "ResNet-50"}[model]
    assert verdict("vision-docs", text, images(model, gains)) == expected


@pytest.mark.parametrize("table", ["timm", "vision-docs"])
def test_the_published_figures_answer_and_are_shown(table):
    experiment = experiments.get(table)
    rows = experiment.published()
    ours = Evidence(Records(images("resnet50", {1: 10.0})))
    latency, ratio = experiment.tables(ours, rows)
    assert {f"{PUBLISHED} eager", f"{PUBLISHED} inductor"} <= set(latency.columns)
    assert len(ratio.rows) >= len(rows)
    published = Evidence(Records(experiment.published_records(rows)))
    answers = [claim.check(published).verdict for claim in experiment.claims]
    # 37 % of ResNet-50's time is more than the 30 % of the page's own sentence.
    assert answers == {"timm": [HOLDS, HOLDS], "vision-docs": [FAILS, HOLDS, HOLDS]}[table]


def over_workloads(ratios: list[float], pass_name: str = "inference", spread: float = 0.01) -> list[dict]:
    records = []
    for index, ratio in enumerate(ratios):
        shared = {"workload": f"model {index}", "pass": pass_name, "device": "gpu:0"}
        records += [timed(9.0, **shared), timed(9.0, 100 * (1 - 1 / ratio), spread=spread, **shared)]
    return records


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [([1.5, 3.4353] * 4, HOLDS), ([1.1] * 8, FAILS), ([2.382] * 8, UNTOLD), ([2.27] * 7, UNTOLD)],
)
def test_an_average_needs_eight_workloads_and_names_them(ratios, expected):
    assert verdict("geometric-mean", "On average compiling makes inference", over_workloads(ratios)) == expected
    experiment = experiments.get("geometric-mean")
    (table,) = experiment.tables(Evidence(Records(over_workloads(ratios))), experiment.published())
    assert [row[0] for row in table.rows] == [*(f"model {index}" for index in range(len(ratios))), "geometric mean"]
    assert bool(table.rows[-1][1]) == (len(ratios) >= 8)


@pytest.mark.parametrize(("ratio", "expected"), [(1.41, [HOLDS, FAILS]), (1.51, [FAILS, HOLDS]), (3.0, [FAILS, FAILS])])
def test_averages_of_training(ratio, expected):
    records = over_workloads([ratio] * 8, "training")
    texts = ("On average it makes training", "In mixed precision it trains")
    assert [verdict("geometric-mean", text, records) for text in texts] == expected


def test_the_interval_of_a_mean_is_narrower_than_its_parts_by_the_root_of_their_number():
    from experiments.geometric_mean import geometric_mean
    from measurement.statistics import Interval

    part = Interval(2.0, 2.0 / 1.21, 2.0 * 1.21)
    mean = geometric_mean([part, part, part, part])
    assert mean == pytest.approx((2.0, 2.0 / 1.1, 2.0 * 1.1))
