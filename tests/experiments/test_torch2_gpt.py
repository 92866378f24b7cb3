"""The claims of torch2-gpt on records that make each hold, fail, and untellable; the published figures add up."""

from __future__ import annotations

from functools import partial

import pytest
from doubles.synthetic import FAILS, HOLDS, OPEN, timed
from doubles.synthetic import verdict as verdict_of

import experiments
from experiments.evidence import Evidence, Records
from experiments.spec import ALL
from experiments.torch2_gpt import mfu_pct, published_records

EXPERIMENT = experiments.get("torch2-gpt")
verdict = partial(verdict_of, "torch2-gpt")


def trained(medium: float, small: float, mode: str = "graph", spreads: tuple = (0.1, 10.0), **options) -> list[dict]:
    """Both models in eager and a graph mode, with gains in percent and standard deviations in percent of the mean."""
    records = []
    for workload, gain, spread in (("gpt2-124m", medium, spreads[0]), ("gpt-10m", small, spreads[1])):
        shared = {"workload": workload, "device": "gpu:0", "latency_ms_mean": 100.0, "latency_ms_std": spread}
        shared["calls_per_sample"] = 1
        records += [timed(100.0, **shared), timed(100.0, gain, mode=mode, **shared, **options)]
    return records


@pytest.mark.parametrize(("gain", "expected"), [(15, HOLDS), (40, FAILS), (2, FAILS), (20, OPEN)])
def test_the_compiler_saves_about_15_percent_of_the_medium_model(gain, expected):
    assert verdict("The compiler saves about 15 %", trained(gain, 24)) == expected


@pytest.mark.parametrize(("gain", "expected"), [(24, HOLDS), (50, FAILS), (29, OPEN)])
def test_and_about_24_of_the_small_one(gain, expected):
    assert verdict("It saves about 24 %", trained(15, gain)) == expected


@pytest.mark.parametrize(("small", "expected"), [(24, HOLDS), (5, FAILS), (15.5, OPEN)])
def test_more_on_the_small_model(small, expected):
    assert verdict("It saves more on the small", trained(15, small)) == expected


@pytest.mark.parametrize(("gain", "expected"), [(1, HOLDS), (20, FAILS), (5, OPEN)])
def test_cuda_graphs_alone_bring_nothing(gain, expected):
    assert verdict("CUDA graphs alone", trained(gain, 0, mode="cudagraphs"), side=ALL) == expected


def test_cuda_graphs_are_not_what_the_compiler_saves():
    assert verdict("The compiler saves about 15 %", trained(15, 24, mode="cudagraphs"), "alpha cudagraphs") == OPEN
    assert verdict("CUDA graphs alone", trained(15, 24), side=ALL) == OPEN


@pytest.mark.parametrize(("spreads", "expected"), [((0.1, 10), HOLDS), ((8, 10), FAILS), ((0.1, 3), OPEN)])
def test_iterations_are_steady_on_the_medium_and_noisy_on_the_small(spreads, expected):
    assert verdict("Iterations are steady", trained(15, 24, spreads=spreads)) == expected


def test_the_spread_of_samples_is_none_of_iterations_where_a_sample_holds_several():
    records = trained(15, 24)
    queued = [*records[:-1], records[-1] | {"calls_per_sample": 8}]
    assert verdict("Iterations are steady", queued) == OPEN
    shown = [
        next(table for table in EXPERIMENT.tables(Evidence(Records(rows)), []) if table.title.startswith("Iteration"))
        for rows in (records, queued)
    ]
    assert [table.rows[0] for table in shown] == [("gpt-10m", "100 ± 10", "100 ± 10"), ("gpt-10m", "100 ± 10", "100")]


def test_one_model_alone_tells_nothing_of_both():
    assert verdict("It saves more on the small", trained(15, 24)[:2]) == OPEN
    assert verdict("Iterations are steady", trained(15, 24)[:2]) == OPEN


def test_the_published_utilization_follows_from_the_published_times():
    rows = EXPERIMENT.published()
    for row, record in zip(rows, Records(published_records(rows)), strict=True):
        assert mfu_pct(record) == pytest.approx(float(row["mfu_pct_mean"]), abs=1.0), row.mode


def test_both_conventions_of_the_published_gain_are_shown():
    tables = {table.title: table for table in EXPERIMENT.tables(Evidence(Records([])), EXPERIMENT.published())}
    (less,) = [table for title, table in tables.items() if title.startswith("Less time")]
    (more,) = [table for title, table in tables.items() if title.startswith("More speed")]
    assert [row[-1] for row in less.rows] == ["23.9", "15"]
    assert [row[-1] for row in more.rows] == ["31.5", "17.7"]


def test_the_published_figures_hold_their_own_claims():
    for claim in EXPERIMENT.claims:
        answers = EXPERIMENT.answers(claim, Evidence(Records([])))
        assert HOLDS in {answer.verdict for answer in answers.values()}, claim.sentence
        assert FAILS not in {answer.verdict for answer in answers.values()}, claim.sentence
