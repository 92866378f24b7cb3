"""Who is fastest at a shape, on records made for each rule, and who is named beside the ranking."""

from __future__ import annotations

from doubles.advised import KNOWN, cell

from analysis.points import Points
from reports import verdict


def beside(elsewhere: bool) -> tuple[Points, list[verdict.Verdict]]:
    rows = [cell(10.0), cell(5.0, 2.0, mode="plain")]
    other = [cell(9.0, framework="beta"), cell(4.0, 2.25, framework="beta")]
    other = [row | {"machine_id": "ffff", "device_name": "Another processor"} for row in other] if elsewhere else other
    points = Points(rows + other)
    return points, verdict.verdicts_of(points, KNOWN)


def test_frameworks_are_ranked_by_latency_and_those_of_other_machines_named_beside():
    _, (here,) = beside(elsewhere=False)
    (fastest,) = here.fastest.values()
    assert fastest.sentence == (
        "At batch 1, 128 tokens the fastest is beta graph, 4 ms; then alpha plain, 5 ms (1.25× the time, "
        "95 %: 1.24 to 1.26×)."
    )
    assert fastest.absent == ()
    _, (first, second) = beside(elsewhere=True)
    (fastest,) = first.fastest.values()
    assert fastest.sentence == "At batch 1, 128 tokens: alpha plain, 5 ms (no other framework was measured here)."
    assert [absent.sentence for absent in fastest.absent] == [
        "not ranked: beta graph, 4 ms on Another processor: 1.25× the speed of the fastest here (95 %: 1.24 to 1.26×)"
    ]
    (other,) = second.fastest.values()
    assert "1.25× the time of the fastest here (95 %: 1.24 to 1.26×)" in other.absent[0].sentence
    again = [cell(4.5, machine_id="ffff", device_name="Another processor")]
    rows = [point.record for point in beside(elsewhere=True)[0].all]
    for whole in verdict.verdicts_of(Points(rows + again), KNOWN):
        ranked = {rank.point.record.framework for fastest in whole.fastest.values() for rank in fastest.ranks}
        absent = {one.point.record.framework for fastest in whole.fastest.values() for one in fastest.absent}
        assert ranked & absent == set()


def test_of_an_absent_framework_the_figures_of_most_processes_count():
    there = {"framework": "beta", "device_name": "Another processor"}
    other = [cell(4.0, 2.25, **there, machine_id="ffff"), cell(3.0, 2.25, **there, machine_id="eeee", launches=1)]
    (here, *_) = verdict.verdicts_of(Points([cell(10.0), cell(5.0, 2.0, mode="plain"), *other]), KNOWN)
    ((absent,),) = [fastest.absent for fastest in here.fastest.values()]
    assert absent.sentence.startswith("not ranked: beta graph, 4 ms on") and "one process" not in absent.sentence
    (here, *_) = verdict.verdicts_of(Points([cell(10.0), cell(5.0, 2.0, mode="plain"), other[1]]), KNOWN)
    ((absent,),) = [fastest.absent for fastest in here.fastest.values()]
    assert absent.sentence.startswith("not ranked: beta graph, 3 ms on Another processor, one process")


def test_the_winner_s_modes_that_may_be_as_fast_are_named_and_libraries_said_to_differ():
    rows = [cell(4.0, 2.0, mode="plain"), cell(4.01, 2.0, mode="quick"), cell(8.0, 2.0, framework="beta")]
    (one,) = verdict.verdicts_of(Points([row | {"implementation": "library"} for row in rows]), KNOWN)
    (fastest,) = one.fastest.values()
    assert "the fastest is alpha plain, 4 ms (alpha quick, 4.01 ms, may be as fast); then beta" in fastest.sentence
    assert "IMPL=plain" in one.unlike and verdict.verdicts_of(Points(rows), KNOWN)[0].unlike == ""
    (alone,) = verdict.verdicts_of(Points([row | {"implementation": "library"} for row in rows[:2]]), KNOWN)
    assert alone.unlike == ""


def test_asked_for_machines_are_ranked_together():
    points, _ = beside(elsewhere=True)
    (whole,) = verdict.verdicts_of(Points([point.record for point in points.all], across=True), KNOWN)
    (fastest,) = whole.fastest.values()
    assert fastest.absent == () and "beta graph on Another processor, 4 ms; then alpha plain on" in fastest.sentence


def test_the_fastest_two_may_not_be_told_apart():
    rows = [cell(5.0), cell(5.02, framework="beta", latency_ms_ci_low=2.1, latency_ms_ci_high=12.04)]
    begun = "At batch 1, 128 tokens: alpha eager, 5 ms"
    assert (
        ranked(*rows)
        == f"{begun} (95 %: 4.95 to 5.05), and beta eager, 5.02 ms (95 %: 2.1 to 12), are not shown to differ."
    )
    rows[1] |= {"latency_ms_ci_low": None, "latency_ms_ci_high": None}
    assert ranked(*rows) == f"{begun} (95 %: 4.95 to 5.05), and beta eager, 5.02 ms, are not shown to differ."


def ranked(*rows: dict) -> str:
    """The sentence on the only shape of the only setting."""
    (whole,) = verdict.verdicts_of(Points(list(rows)), KNOWN)
    (fastest,) = whole.fastest.values()
    return fastest.sentence
