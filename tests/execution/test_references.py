"""Outputs that stand in for the oracle's where that would take too long to compute."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from execution.comparison import References
from execution.reference_data import ReferenceData
from plan.plan import Group
from records import judgement
from records.cell_result import CellResult
from records.runs import Run


@pytest.fixture
def parity(cell, report, tmp_path):
    """Parity of cells measured in this order, given as (dtype, mode, their one output), without an oracle.

    For each whom it was compared with, and whether it holds; None for a cell that was compared with nothing.
    """
    reference_data = ReferenceData(Path(), Path(), None, "seed:0")
    run = Run(tmp_path)

    def parities(*measured: tuple[str, str, float]) -> list[tuple[str, bool] | None]:
        """As a run does that was started or resumed."""
        references, results = References(run), []
        for dtype, mode, value in measured:
            path = tmp_path / f"{len(list(tmp_path.glob('*.npz')))}.npz"
            np.savez(path, **{"0.output": value * np.arange(4, dtype=np.float32)})
            one = cell(dtype=dtype, mode=mode)
            result = CellResult(one, reports=[report(outputs=str(path))])
            references.check(Group((one,), frozenset({one.id})), {one.id: result}, lambda group: reference_data)
            results.append((result.parity.reference, result.parity.holds) if result.parity else None)
            flags = judgement.flags_of(result)
            assert ("not_compared" in flags) == (result.parity is None)
            assert ("zero_outputs" in flags) == (measured[0][2] == 0.0)
        return results

    return parities


def test_outputs_of_zeros_alone_are_flagged_also_of_the_first_one_measured(parity):
    assert parity(("fp32", "eager", 0.0), ("fp32", "inductor", 0.0)) == [None, ("torch eager", True)]


def test_the_first_one_measured_is_compared_with_nothing_and_others_with_it(parity):
    assert parity(("fp32", "eager", 1.0), ("fp32", "inductor", 1.0), ("fp32", "cudagraphs", 1.1)) == [
        None,
        ("torch eager", True),
        ("torch eager", False),
    ]


def test_no_outputs_are_right_because_they_are_their_own(parity):
    """Eager failed, and the only mode left gives a thousand million: nothing says that this is right."""
    assert parity(("fp32", "inductor", 1e9)) == [None]


def test_what_is_no_number_is_wrong_and_stands_in_for_nothing(parity):
    parities = parity(("fp32", "eager", math.nan), ("fp32", "inductor", 1.0), ("fp32", "cudagraphs", 1.0))
    assert parities == [("any other framework", False), None, ("torch inductor", True)]


def test_a_coarser_dtype_s_outputs_stand_in_for_no_finer_one_s(parity):
    """bf16 is right within its own tolerance; TF32, nearer to the truth, must not be measured by it."""
    parities = parity(
        ("bf16", "eager", 1.01), ("fp32", "inductor", 1.0), ("fp32", "eager", 1.0), ("bf16", "inductor", 1.0)
    )
    assert parities == [None, None, ("torch inductor", True), ("torch eager", True)]


def test_a_resumed_run_compares_with_what_stood_in_before_it_was_interrupted(parity):
    assert parity(("fp32", "eager", 1.0), ("bf16", "inductor", 1.0)) == [None, None]
    assert parity(("fp32", "inductor", 1.1), ("fp32", "cudagraphs", 1.0), ("bf16", "eager", 1.0)) == [
        ("torch eager", False),
        ("torch eager", True),
        ("torch inductor", True),
    ]


def test_a_cell_that_stands_in_and_is_measured_again_is_not_compared_with_itself(parity):
    assert parity(("fp32", "eager", 1.0)) == [None]
    assert parity(("fp32", "eager", 2.0), ("fp32", "inductor", 2.0)) == [None, ("torch eager", True)]


def test_nothing_takes_the_place_of_outputs_that_are_gone(parity, tmp_path):
    """Else two cells of one run would be compared with different ones, and agree with neither's."""
    assert parity(("fp32", "eager", 1.0)) == [None]
    (tmp_path / "0.npz").rename(tmp_path / "moved.npz")
    parities = parity(("fp32", "inductor", 1.1), ("fp32", "cudagraphs", math.nan), ("fp32", "eager", 1.0))
    assert parities == [None, ("any other framework", False), None]
