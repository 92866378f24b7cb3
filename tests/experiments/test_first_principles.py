"""The claims of first-principles on records that make each hold, fail, and untellable."""

from __future__ import annotations

from functools import partial

import pytest
from doubles.synthetic import FAILS, HOLDS, OPEN, timed
from doubles.synthetic import verdict as verdict_of

import experiments
from experiments.evidence import Evidence, Records
from experiments.first_principles import chain

EXPERIMENT = experiments.get("first-principles")
verdict = partial(verdict_of, "first-principles")


def series(workload: str, axis: str, eager: dict[int, float], graph: dict[int, float], spread: float = 0.01) -> list:
    """Latencies in ms of both modes by the value of one parameter."""
    records = []
    for mode, times in (("eager", eager), ("graph", graph)):
        for value, milliseconds in times.items():
            where = {"batch_size": value} if axis == "batch_size" else {"parameters": {axis: value}}
            bytes_ = {"bytes": 8000, "flops": 1000 * value, "unfused_bytes": 8000 * value}
            records.append(timed(milliseconds, mode=mode, workload=workload, spread=spread, **where, **bytes_))
    return records


def chains(fused: dict[int, float], **options) -> list[dict]:
    return series("pointwise-chain", "repeat", {repeat: 1.0 * repeat for repeat in fused}, fused, **options)


ROOFLINE = {1: 1.0, 16: 1.0, 64: 1.05, 256: 4.0, 1024: 16.0}
CREEPING = {1: 1.0, 16: 1.1, 64: 1.25, 256: 3.2, 1024: 10.0}
UNFUSED = {1: 1.0, 16: 16.0, 64: 64.0, 256: 256.0, 1024: 1024.0}


@pytest.mark.parametrize(("fused", "expected"), [(ROOFLINE, HOLDS), (UNFUSED, FAILS), (CREEPING, OPEN)])
def test_a_fused_chain_is_flat_up_to_64(fused, expected):
    assert verdict("Fused, a chain's time is flat", chains(fused)) == expected


@pytest.mark.parametrize(
    ("last", "expected"), [(16.0, HOLDS), (4.0, FAILS), (40.0, FAILS), (20.0, OPEN)], ids=["4x", "1x", "10x", "5x"]
)
def test_a_long_chain_is_linear(last, expected):
    assert verdict("Fused, a long chain's time is linear", chains(ROOFLINE | {1024: last})) == expected


def test_a_chain_faster_than_the_peak_was_not_computed():
    merged = [record | {"mfu_pct": 250.0, "achieved_tflops": 0.25, "peak_tflops": 0.1} for record in chains(ROOFLINE)]
    assert verdict("Fused, a chain's time is flat", merged) == OPEN
    assert verdict("Fused, a long chain's time is linear", merged) == OPEN


def test_a_chain_that_grappler_merges_has_no_verdict_and_no_rate():
    records = [record | {"framework": "tensorflow"} for record in chains(UNFUSED)]
    merged = [record | {"mode": "function"} if record.mode == "graph" else record for record in records]
    for claim, unmerged in (("Fused, a chain's time is flat", FAILS), ("Fused, a long chain's time is linear", HOLDS)):
        assert verdict(claim, records, "tensorflow graph") == unmerged
        assert verdict(claim, merged, "tensorflow function") == OPEN
    assert verdict("Unfused, eager pays", merged, "tensorflow") == HOLDS
    assert chain.highest("tflops")(Evidence(Records(merged))) == ""


def test_a_chain_without_its_ends_tells_nothing():
    assert verdict("Fused, a chain's time is flat", chains({1: 1.0, 2: 1.0})) == OPEN
    assert verdict("Fused, a long chain's time is linear", chains({1: 1.0, 512: 3.0})) == OPEN
    assert verdict("Fused, a chain's time is flat", chains(ROOFLINE, spread=0)) == OPEN


@pytest.mark.parametrize(("last", "expected"), [(64.0, HOLDS), (2.0, FAILS), (32.0, OPEN)])
def test_eager_pays_for_every_multiplication(last, expected):
    assert verdict("Unfused, eager pays", series("pointwise-chain", "repeat", {1: 1.0, 64: last}, ROOFLINE)) == expected


@pytest.mark.parametrize(("two", "expected"), [(1.05, HOLDS), (1.9, FAILS), (1.25, OPEN)])
def test_two_fused_cosines_cost_one(two, expected):
    assert verdict("Fused, x.cos()", series("fused-cos", "repeat", {1: 1.0, 2: 2.0}, {1: 1.0, 2: two})) == expected


@pytest.mark.parametrize(("two", "expected"), [(2.0, HOLDS), (1.1, FAILS), (1.6, OPEN)])
def test_two_cosines_cost_two_in_eager(two, expected):
    assert verdict("Unfused, x.cos", series("fused-cos", "repeat", {1: 1.0, 2: two}, {1: 1.0, 2: 1.0})) == expected


@pytest.mark.parametrize(("python_ms", "expected"), [(0.05, HOLDS), (5.0, FAILS), (0.1, OPEN)])
def test_python_adds_a_hundred_times_as_often(python_ms, expected):
    additions = series("op-overhead", "additions", {1000: 10.0}, {1000: 0.2})
    python = timed(python_ms, framework="python", workload="op-overhead", parameters={"additions": 1000})
    numpy = timed(1.0, framework="numpy", workload="op-overhead", parameters={"additions": 1000})
    assert verdict("Python adds", [*additions, python, numpy]) == expected
    assert verdict("Python adds", additions) == OPEN
    assert verdict("Python adds", [*additions, python | {"machine_id": "another"}]) == OPEN


@pytest.mark.parametrize(
    ("last", "small", "large"), [({1: 1.0, 2: 1.02, 4: 2.0}, HOLDS, HOLDS), ({1: 1.0, 2: 1.9, 4: 1.91}, FAILS, FAILS)]
)
def test_doubled_batches(last, small, large):
    records = series("mlp", "batch_size", last, last)
    assert verdict("At the smallest batch", records) == small
    assert verdict("At the largest", records) == large


def test_doubled_batches_that_tell_nothing():
    assert verdict("At the smallest batch", series("mlp", "batch_size", {1: 1.0, 2: 1.1}, {1: 1.0, 2: 1.0})) == OPEN
    assert verdict("At the largest", series("mlp", "batch_size", {1: 1.0}, {1: 1.0})) == OPEN


def test_rates_of_a_chain_count_what_the_mode_moves():
    records = Records(series("pointwise-chain", "repeat", {64: 1.0}, {64: 1.0}))
    eager, graph = (chain.rates(record) for record in records)
    assert eager["intensity"] == graph["intensity"] == 8.0
    assert eager["gb_per_s"] == 64 * graph["gb_per_s"] == pytest.approx(8000 * 64 / 1e-3 / 1e9)
    assert eager["tflops"] == pytest.approx(64_000 / 1e-3 / 1e12)


def test_published_quantities_stand_beside_ours():
    (table, *_) = EXPERIMENT.tables(Evidence(Records(chains(ROOFLINE))), EXPERIMENT.published())
    assert table.columns[4:] == ("alpha graph",)
    rows = {row[1]: row for row in table.rows}
    assert rows["runtime stays flat up to repeat"][2:] == ("64", "multiplications", "64")
    assert rows["A100 memory bandwidth"][-1] == ""
    assert len(table.rows) == len(EXPERIMENT.published()) == 16
