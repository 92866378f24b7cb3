"""What a report's sections are made from, and what several of them say."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from reports import facts
from reports.points import Points


@dataclass(frozen=True)
class Material:
    """What a report is made from: the points, profiled cells, the machines' facts, and remarks on what was read."""

    points: Points
    profiles: tuple[dict, ...] = ()
    machines: dict[str, dict] = field(default_factory=dict)  # by machine_id
    remarks: tuple[str, ...] = ()

    @cached_property
    def pairs(self) -> list[facts.Pair]:
        """Every measured graph point with its measured eager one."""
        return facts.pairs(self.points.measured)

    @cached_property
    def contests(self) -> list[list[facts.Rank]]:
        """The ranking of every shape that several frameworks ran."""
        return facts.contests(self.points.measured)


FEW_LAUNCHES = (
    "“In 1 launch” (or 2) says that a difference was seen within one process (or two) of a framework, and holds there: "
    "the next process of the same code may be faster or slower by more than the interval, which is drawn thin. "
    "PROFILE=standard tells across processes."
)
