"""Lines of an answer on what its cells measured besides speed."""

from __future__ import annotations

import pytest

from analysis import modes
from analysis.answers import by_setting
from analysis.points import Points
from reports import answers


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
    assert answers.scaling(answer) == ["Each rank keeps of the speed on one rank: torch eager 95 % (94 to 96)."]
    slow = {"scaling_efficiency": 0.5, "latency_slowed": True}
    ((slowed,),) = by_setting(Points([record(**shared, mode="eager", **slow)]), modes.labels())
    assert answers.scaling(slowed) == ["Each rank keeps of the speed on one rank: torch eager host slowed."]
    ((alone,),) = by_setting(Points([record(mode="eager")]), modes.labels())
    assert answers.scaling(alone) == []
