"""Data of a report's sections, and texts that several of them share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from analysis.answers import Answer, by_setting
from analysis.ladders import Ladder
from analysis.points import Point, Points
from analysis.settings import Known
from records.shapes import MachineFacts, Profile
from reports import drawing


@dataclass(frozen=True)
class ReportData:
    """Data of a report: the points, profiled cells, the machines' facts, and remarks on the files read.

    `known` has the properties of modes from the frameworks' descriptions, by framework and mode.
    """

    points: Points
    profiles: tuple[Profile, ...] = ()
    machines: Mapping[str, MachineFacts] = field(default_factory=dict)  # by machine_id
    remarks: tuple[str, ...] = ()
    known: Known = field(default_factory=dict)
    commands: tuple[str, ...] = ()  # that measured the records
    ladders: tuple[Ladder, ...] = ()

    @cached_property
    def answers(self) -> list[list[Answer]]:
        """Return the answers of every setting; a setting's place in this list is its key."""
        return by_setting(self.points, self.known)

    @cached_property
    def setting_of(self) -> dict[int, str]:
        """Return the key of a measured point's setting by the point's identity; rungs have none."""
        return {id(point): str(n) for n, some in enumerate(self.answers) for point in some[0].setting.points}

    @cached_property
    def looks(self) -> dict[tuple[str, str], drawing.Look]:
        """Return colour and symbol of every mode."""
        return drawing.looks(self.points.all, self.known)

    def look(self, point: Point) -> drawing.Look:
        """Return colour and symbol of a point's mode."""
        return self.looks[point.record.framework, point.record.mode]

    @cached_property
    def looks_in_order(self) -> list[drawing.Look]:
        """Return the looks of `points.series`, in its order."""
        firsts = {point.series: point for point in self.points.all}
        return [self.look(firsts[name]) for name in self.points.series]

    @cached_property
    def _numbers(self) -> dict[str, str]:
        return {name: str(n) for n, name in enumerate(self.points.series)}

    def mode(self, point: Point) -> str:
        """Return the number of a point's series in the page."""
        return self._numbers[point.series]
