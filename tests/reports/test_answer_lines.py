"""Lines of an answer on what its cells measured besides speed."""

from __future__ import annotations

import pytest
from doubles.advised import answered, cell

from analysis import modes
from analysis.answers import by_setting
from analysis.points import Points
from reports import answers
from reports.sections import answer as section


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("unsupported: no counter", ["Energy: unsupported: no counter."]),
        ("NVML", ["Energy: too few processes."]),  # they have no interval
        (None, []),
    ],
)
def test_a_line_says_why_no_energy_is_known(record, source, line):
    ((answer,),) = by_setting(Points([record(mode="eager", energy_source=source)]), modes.labels())
    assert answers.energy(answer) == line


def test_a_line_says_how_much_of_one_rank_s_speed_is_kept(record):
    shared = {"framework": "torch", "pass": "training", "parameters": "ranks=2"}
    kept = {"scaling_efficiency": 0.95, "scaling_efficiency_low": 0.94, "scaling_efficiency_high": 0.96}
    records = [record(**shared, mode="eager", **kept), record(**shared, mode="inductor")]
    ((answer,),) = by_setting(Points(records), modes.labels())
    assert answers.scaling(answer) == ["Each rank keeps of the speed on one rank: torch eager 95 % (94–96)."]
    slow = {"scaling_efficiency": 0.5, "latency_slowed": True}
    ((slowed,),) = by_setting(Points([record(**shared, mode="eager", **slow)]), modes.labels())
    assert answers.scaling(slowed) == ["Each rank keeps of the speed on one rank: torch eager host slowed."]
    ((alone,),) = by_setting(Points([record(mode="eager")]), modes.labels())
    assert answers.scaling(alone) == []


def test_the_row_of_a_time_that_a_slow_host_lengthened_is_marked_once():
    slow = {"flags": "host_slowed", "latency_slowed": True}

    def gains(*rows: dict) -> list[str]:
        (answer,) = answered(*rows)
        return [line.gain for line in answers.lines(answer)]

    undeployed = [cell(60.0, framework="idle", **slow), cell(0.7, 90.0, framework="idle", **slow)]
    assert gains(*undeployed) == ["host slowed"]
    assert gains(*undeployed[:1], undeployed[1] | {"latency_slowed": False}) == [""]  # the pair alone
    assert gains(cell(5.0, **slow)) == ["host slowed"]
    assert gains(cell(5.0, **slow), cell(4.0, 1.25, mode="plain", **slow)) == ["host slowed"]
    (answer,) = answered(cell(5.0), *undeployed)
    assert answers.folded(answer) == ["Not for deployment: idle eager 60 ms (host slowed)."]
    (answer,) = answered(cell(9.0, **slow), cell(5.0, 1.8, mode="plain"), cell(8.0, 1.1, mode="quick", **slow))
    assert answers.rest(answer) == ["Also: alpha eager 9 ms (host slowed), alpha quick 8 ms (host slowed)."]


def test_the_page_marks_times_and_speedups_of_a_slow_host():
    """In the table the cell of the speedup, in the chart the note, in the card the figures."""
    slow = {"flags": "host_slowed", "latency_slowed": True}
    (answer,) = answered(cell(5.0), cell(4.0, 1.25, mode="plain", **slow), cell(4.5, 1.1, mode="quick"))
    shown = {point.record.mode: section._speedup(point) for point in answer.points}
    assert shown["eager"] == "" and shown["plain"] == "host slowed" and shown["quick"].text.startswith("1.1")
    (answer,) = answered(cell(5.0, **slow), cell(4.0, 1.25, mode="plain", **slow | {"latency_slowed": False}))
    assert [section._speedup(point) for point in answer.points] == ["host slowed"] * 2
    assert all("host slowed" in line or "eager" not in line for line in section.in_words(answer))
