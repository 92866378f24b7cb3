"""Which launches of a cell count, and which are still to be made."""

from __future__ import annotations

from harness.outcomes import Outcome


def test_a_launch_that_two_interruptions_left_twice_counts_once(cell, report, tmp_path):
    """Half a group was kept, measured again by the resumed run, and kept again when that was interrupted too."""
    outcome = Outcome(cell())
    outputs = tmp_path / "outputs.npz"
    outputs.touch()
    for launch, worker in ((0, "0001"), (1, "0001"), (1, "0002")):
        one = report(launch=launch, worker=worker, outputs=str(outputs))
        outcome.take_over({"started_at": "2026-01-01T00:00:00Z", "hello": {}, "report": one})
    assert [(one["launch"], one["worker"]) for one in outcome.reports] == [(0, "0001"), (1, "0002")]
