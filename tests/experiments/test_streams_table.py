"""The claims of streams on planted streams that make each hold, fail, and inconclusive."""

from __future__ import annotations

from dataclasses import replace

import pytest
from doubles.streams import planted
from doubles.synthetic import FAILS, HOLDS, OPEN, verdict

import experiments
from analysis.streams import cells
from experiments import page
from experiments.evidence import Evidence, Records

EXPERIMENT = experiments.get("streams")
FAST, SLOW = (0.3, 0.002), (0.3, 0.02)  # seconds of the first call and of each other one; eager's are 0.01


def evidence(scatter: float = 0.01, **others: tuple[float, float]) -> Evidence:
    gpu = {"device": "gpu:0"} if any(name.endswith("cuda_graphs") for name in others) else {}
    records = planted("eager", 0.01, 0.01, scatter)
    for name, (first, call) in others.items():
        strategy = name.replace("_", "-")
        compilations = 1 if strategy in ("longest", "dynamic") else 8
        records += planted(strategy, first, call, scatter, compilations=compilations)
    return Evidence(Records(()), streams=tuple(cells([replace(one, **gpu) for one in records])))


@pytest.mark.parametrize(
    ("text", "others", "expected"),
    [
        ("With a CUDA graph for each size", {"automatic_cuda_graphs": SLOW}, HOLDS),
        ("With a CUDA graph for each size", {"automatic_cuda_graphs": FAST}, FAILS),
        ("Padded to a fixed length", {"longest_cuda_graphs": FAST}, HOLDS),
        ("Padded to a fixed length", {"longest_cuda_graphs": SLOW}, FAILS),
        ("Without CUDA graphs", {"automatic": SLOW, "longest_cuda_graphs": FAST}, HOLDS),
        ("Without CUDA graphs", {"automatic": FAST, "longest_cuda_graphs": SLOW}, FAILS),
        ("Padded to the longest", {"longest": SLOW, "automatic": FAST}, HOLDS),
        ("Padded to the longest", {"longest": FAST, "automatic": SLOW}, FAILS),
        ("Padding saves compilations", {"longest": FAST, "automatic": SLOW}, HOLDS),
        ("Padding saves compilations", {"longest": FAST}, OPEN),
        ("Buckets with CUDA graphs", {"dynamic": SLOW, "powers_of_two_cuda_graphs": (9.0, 0.002)}, HOLDS),
        ("Buckets with CUDA graphs", {"dynamic": FAST, "powers_of_two_cuda_graphs": SLOW}, FAILS),
        ("Fewer recorded", {"multiples_of_64_cuda_graphs": SLOW, "powers_of_two_cuda_graphs": FAST}, HOLDS),
        ("Fewer recorded", {"multiples_of_64_cuda_graphs": FAST, "powers_of_two_cuda_graphs": SLOW}, FAILS),
        ("Padding to the model's longest", {"longest": SLOW}, HOLDS),
        ("Padding to the model's longest", {"longest": (9.0, 0.002)}, FAILS),
        ("Padding to the model's longest", {"longest_cuda_graphs": SLOW}, OPEN),
        ("dynamic=True compiles less", {"static": FAST, "dynamic": FAST}, HOLDS),
        ("dynamic=True compiles less", {}, OPEN),
    ],
)
def test_claims_follow_the_streams(text, others, expected):
    assert verdict("streams", text, evidence(**others)) == expected


def test_a_strategy_that_fell_back_to_eager_mode_is_no_evidence():
    records = [*planted("eager", *SLOW, 0.01), *planted("dynamic", *FAST, 0.01, compilations=1)]
    for fell_back, expected in ((None, HOLDS), (12, OPEN)):
        longest = planted("longest", *SLOW, 0.01, compilations=8, fell_back=fell_back)
        found = Evidence(Records(()), streams=tuple(cells([*records, *planted("automatic", *FAST, 0.01), *longest])))
        assert verdict("streams", "Padded to the longest", found) == expected
        assert verdict("streams", "Padding saves compilations", found) == FAILS  # compilations are counted anyway


def test_a_cell_without_a_strategy_changes_no_answer():
    with_both = [*planted("longest", *SLOW, 0.01), *planted("automatic", *FAST, 0.01)]
    without = [replace(one, cell=f"{one.cell}6") for one in planted("longest", *SLOW, 0.01)]
    found = Evidence(Records(()), streams=tuple(cells([*with_both, *without])))
    assert verdict("streams", "Padded to the longest", found) == HOLDS


def test_rounds_on_slow_cores_are_no_evidence():
    """The pair of the first round has the slow process: four remain, and with three slow ones too few."""
    for slow, expected in ((1, HOLDS), (3, OPEN)):
        longest = planted("longest", *SLOW, 0.01)
        longest = [replace(one, host_loop_ms=2.0 if one.round < slow else 1.0) for one in longest]
        others = [replace(one, host_loop_ms=1.0) for one in planted("automatic", *FAST, 0.01)]
        found = Evidence(Records(()), streams=tuple(cells([*others, *longest])))
        assert verdict("streams", "Padded to the longest", found) == expected


def test_nothing_is_claimed_where_nothing_ran():
    assert {claim.check(Evidence(Records(()))).verdict for claim in EXPERIMENT.claims} == {OPEN}


def test_the_table_has_a_row_for_each_strategy():
    ours, theirs = EXPERIMENT.tables(evidence(longest=FAST), EXPERIMENT.published())
    assert [row[:2] for row in ours.rows] == [("torch bert-tiny 1×512", one) for one in ("eager", "longest")]
    assert page.setting(evidence()) == "A processor; torch 1"
    assert len(theirs.rows) == len(EXPERIMENT.published())
