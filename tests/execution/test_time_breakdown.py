"""Where a run's time went, on a clock of the test's."""

from __future__ import annotations

from execution.time_breakdown import TimeBreakdown


def test_time_is_booked_to_the_phase_that_ends():
    now = [0.0]
    breakdown = TimeBreakdown(lambda: now[0])
    for phase, seconds in (
        ("start", 4.0),
        ("first call", 3.0),
        ("sampling", 30.0),
        ("warm-up", 60.0),
        ("sampling", 6.0),
    ):
        now[0] += seconds
        breakdown.enter(phase)
    now[0] += 10.0
    assert breakdown.sentence() == (
        "Sampling took 70 of 83 s (84 %), not counting 30 s of compilation; the rest: warm-up 6 s, reference data 4 s, "
        "start 3 s."
    )
    assert breakdown.seconds == {"reference data": 4, "start": 3, "first call": 30, "sampling": 70, "warm-up": 6}


def test_nothing_done_is_a_sentence_too():
    assert TimeBreakdown(lambda: 0.0).sentence().endswith("the rest: none.")
