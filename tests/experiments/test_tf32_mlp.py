"""The claims of tf32-mlp, and those of first-principles that come from profiles."""

from __future__ import annotations

import pytest
from doubles.synthetic import FAILS, HOLDS, OPEN, timed, verdict

import experiments
from experiments.evidence import Evidence, Records
from measurement.kernels import CLASSES

TF32, PRINCIPLES = experiments.get("tf32-mlp"), experiments.get("first-principles")


def profile(mode: str, times: dict[str, float], **changes) -> dict:
    """A profiled cell with milliseconds by class."""
    fields = {
        "framework": "alpha",
        "mode": mode,
        "device": "gpu:0",
        "dtype": "fp32",
        "parameters": {},
        "workload": "mlp",
    }
    return fields | {"classes": dict.fromkeys(CLASSES, 0.0) | {k: v / 1e3 for k, v in times.items()}} | changes


def shares(off: float, on: float) -> Evidence:
    """Profiles in which matrix products take these percentages of the kernels' time, with idle time beside it."""
    profiles = [profile("graph", {"matmul": 1.0})]
    for dtype, share in (("fp32", off), ("tf32", on)):
        profiles.append(profile("eager", {"matmul": share, "pointwise": 100 - share, "idle": 50}, dtype=dtype))
    return Evidence(Records([]), tuple(profiles))


@pytest.mark.parametrize(
    ("off", "on", "falls", "most", "less"),
    [
        (85, 40, HOLDS, HOLDS, HOLDS),
        (60, 80, FAILS, FAILS, FAILS),
        (76, 74, OPEN, OPEN, FAILS),
        (90, 48, HOLDS, HOLDS, OPEN),
    ],
)
def test_shares_of_matrix_products(off, on, falls, most, less):
    evidence = shares(off, on)
    assert verdict("tf32-mlp", "With TF32 on, matrix products take a smaller", evidence) == falls
    assert verdict("tf32-mlp", "With TF32 off, matrix products take most", evidence) == most
    assert verdict("tf32-mlp", "With TF32 on, matrix products take less", evidence) == less


def test_figures_of_profiles_have_an_assumed_spread_and_no_interval():
    by_text = {claim.sentence: claim for experiment in (TF32, PRINCIPLES) for claim in experiment.claims}
    for text, evidence, numbers in (
        ("With TF32 off", shares(85, 40), "matmul with TF32 off 85 %, assumed ±3 points (accepted: above 75)"),
        (
            *("With TF32 on, matrix products take a smaller", shares(85, 40)),
            "matmul with TF32 off 85 %, assumed ±3 points against on 40 %, assumed ±3 points",
        ),
        (
            *("Normalisation reaches", bert(36.4, 1)),
            "normalisation is 182 times slower, assumed ±20 % (accepted: 125–500)",
        ),
    ):
        (claim,) = [claim for sentence, claim in by_text.items() if sentence.startswith(text)]
        assert claim.check(evidence).text == numbers


def test_without_tf32_nothing_compares():
    evidence = Evidence(Records([]), shares(85, 40).profiles[:2])
    assert verdict("tf32-mlp", "With TF32 on, matrix products take a smaller", evidence) == OPEN
    assert verdict("tf32-mlp", "With TF32 on, matrix products take less", evidence) == OPEN


@pytest.mark.parametrize(("on", "expected"), [(40, HOLDS), (1, FAILS), (11, OPEN)])
def test_graph_mode_gains_more_with_tf32(on, expected):
    records = [
        timed(1.0, gain, dtype=dtype, device="gpu:0", spread=0.02) for dtype, gain in (("fp32", 10), ("tf32", on))
    ]
    assert verdict("tf32-mlp", "Graph mode gains more", Evidence(Records(records))) == expected
    assert verdict("tf32-mlp", "Graph mode gains more", Evidence(Records(records[:1]))) == OPEN


def test_the_published_shares():
    assert [(row["tf32"], row["matmul_time_pct"], row["other_time_pct"]) for row in TF32.published()] == [
        ("off", "85", "15"), ("on", "40", "60"),
    ]  # fmt: skip


FLOPS = {"matmul": 940, "attention": 56, "normalisation": 2, "pointwise": 2, "copy": 0}


def bert(normalisation: float, pointwise: float, flops: dict = FLOPS) -> Evidence:
    """BERT with matrix products of 99.6 ms in eager mode: 10 operations a millisecond."""
    times = {"matmul": 99.6, "normalisation": normalisation, "pointwise": pointwise, "copy": 1.0, "idle": 30.0}
    return Evidence(
        Records([]), (profile("eager", times, workload="bert-base", flops=flops), profile("graph", times, flops=flops))
    )


@pytest.mark.parametrize(("outside", "expected"), [(2, HOLDS), (20, FAILS)])
def test_few_flops_are_outside_matrix_products(outside, expected):
    flops = FLOPS | {"normalisation": outside}
    assert verdict("first-principles", "Less than 1 %", bert(10, 10, flops)) == expected


@pytest.mark.parametrize(("time", "expected"), [(30, HOLDS), (0.5, FAILS), (1.8, OPEN)])
def test_they_take_more_time(time, expected):
    assert verdict("first-principles", "In eager mode these FLOPs take more", bert(time, time)) == expected


@pytest.mark.parametrize(("time", "expected"), [(50, HOLDS), (1, FAILS), (500, FAILS), (24, OPEN)])
def test_normalisation_is_250_times_slower(time, expected):
    assert verdict("first-principles", "Normalisation reaches", bert(time, 1)) == expected


@pytest.mark.parametrize(("time", "expected"), [(140, HOLDS), (1, FAILS), (75, OPEN)])
def test_pointwise_is_700_times_slower(time, expected):
    assert verdict("first-principles", "Pointwise operators reach", bert(1, time)) == expected


def test_what_was_not_profiled_tells_nothing():
    evidence = Evidence(Records([]), (profile("graph", {"matmul": 1.0}),))
    for text in ("Less than 1 %", "In eager mode these FLOPs", "Normalisation reaches", "Pointwise operators reach"):
        assert verdict("first-principles", text, evidence) == OPEN


def test_flops_and_time_stand_side_by_side():
    (table,) = [
        t for t in PRINCIPLES.tables(bert(50, 50), PRINCIPLES.published()) if t.title.startswith("bert-operators")
    ]
    rows = {row[0]: dict(zip(table.columns, row, strict=True)) for row in table.rows}
    assert rows["FLOPs"]["matmul"] == "94"
    assert rows["FLOPs"]["idle"] == ""
    assert rows["alpha eager"]["normalisation"] == f"{100 * 50 / 230.6:.2g}"
