"""Outputs that stand in for the oracle's where that would take too long to compute."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.execute import Executor
from harness.materials import Materials
from harness.outcomes import Context, Outcome
from harness.plan import Group
from harness.sweep import resolve
from measurement.profiles import PROFILES

CONTEXT = Context("run", "machine", "A processor", "abc", PROFILES["quick"], "cold", {})


@pytest.fixture
def parity(cell, report, tmp_path):
    """The parity of cells that were measured in this order, given as (dtype, mode, their one output); no oracle."""
    materials = Materials(Path(), Path(), None, "seed:0")
    executor = Executor(
        run=None, sweep=resolve({}), profile=PROFILES["quick"], context=CONTEXT, display=None, interpreters={},
        materials=lambda group: materials, timeout_s=1.0,
    )  # fmt: skip

    def found(*measured: tuple[str, str, float]) -> list[tuple[str, bool]]:
        results = []
        for number, (dtype, mode, value) in enumerate(measured):
            path = tmp_path / f"{number}.npz"
            np.savez(path, output=np.full(4, value, np.float32))
            one = cell(dtype=dtype, mode=mode)
            outcome = Outcome(one, reports=[report(outputs=str(path))])
            executor.check_parity(Group((one,), frozenset({one.id})), {one.id: outcome})
            results.append((outcome.parity.reference, outcome.parity.holds))
        return results

    return found


def test_a_mode_is_compared_with_the_first_one_measured(parity):
    assert parity(("fp32", "eager", 1.0), ("fp32", "inductor", 1.0), ("fp32", "cudagraphs", 1.1)) == [
        ("torch eager", True),
        ("torch eager", True),
        ("torch eager", False),
    ]


def test_a_coarser_dtype_s_outputs_stand_in_for_no_finer_one_s(parity):
    """bf16 is right within its own tolerance; TF32, nearer to the truth, must not be measured by it."""
    found = parity(
        ("bf16", "eager", 1.01), ("fp32", "inductor", 1.0), ("fp32", "eager", 1.0), ("bf16", "inductor", 1.0)
    )
    assert [holds for _, holds in found] == [True] * 4
    assert [reference for reference, _ in found] == ["torch eager", "torch inductor", "torch inductor", "torch eager"]
