"""Answers for one shape from all its records: a choice for each framework, the fastest of them, and unranked points.

The terminal, the page, the Markdown and the README print these answers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from analysis import facts
from analysis.points import Point, Points, grouped
from analysis.rules import USE, Choice, choose
from analysis.settings import Known, Setting, Shape, entrants, settings, words_of
from measurement.flags import FLAGS
from measurement.statistics import ENOUGH_PROCESSES
from records.record import Record

# Flags on the machine while it measured; of these only host_slowed changes answers.
CONDITIONS = ("other_load", "steal", "frequency", "host_slowed", "throttled")


@dataclass(frozen=True)
class Answer:
    """Recommendation for one shape: `choices` of the frameworks, the fastest first, `slowed` ones last.

    Unranked are `undeployed`, points of modes that nobody deploys, and `others`, which no choice names. `elsewhere` are
    unranked too: the fastest point of each framework that ran this shape on other machines only.
    """

    setting: Setting
    shape: Shape
    choices: tuple[Choice, ...]
    others: tuple[Point, ...] = ()
    undeployed: tuple[Point, ...] = ()
    excluded: tuple[Point, ...] = ()
    elsewhere: tuple[Point, ...] = ()

    @cached_property
    def ranks(self) -> list[facts.Rank]:
        """Return the choices' points as ranked by latency, without `slowed` ones."""
        return facts.ranking([choice.point for choice in self.choices if not choice.point.record.slowed])

    @property
    def slowed(self) -> list[Choice]:
        """Return the choices that are not ranked, because a slow host lengthened their time."""
        return [choice for choice in self.choices if choice.point.record.slowed]

    @property
    def fastest(self) -> list[Choice]:
        """Return the fastest ranked choice, and those that are not shown to take longer; none if all are `slowed`."""
        leading = {id(rank.point) for rank in self.ranks if not rank.is_slower}
        return [choice for choice in self.choices if id(choice.point) in leading]

    @property
    def next(self) -> facts.Rank | None:
        """Return the fastest of those that are shown to take longer; None where the winner is alone or not known."""
        if len(self.fastest) != 1:
            return None
        return next((rank for rank in self.ranks if rank.is_slower), None)

    @cached_property
    def points(self) -> list[Point]:
        """Return all points of this shape and setting."""
        return self.setting.at[self.shape]

    @cached_property
    def _pairs(self) -> dict[int, facts.Pair]:
        return {id(pair.graph): pair for pair in facts.pairs(self.points)}

    def pair(self, point: Point) -> facts.Pair | None:
        """Return the pair of a graph's point and its framework's eager mode; None where one is missing or excluded."""
        return self._pairs.get(id(point))

    def compares(self, point: Point) -> bool:
        """Return whether anybody deploys the framework's eager mode, so that a speedup over it matters."""
        return all(one.deployed for one in self.choices if one.framework == point.record.framework)

    @property
    def used(self) -> list[tuple[Choice, facts.Pair]]:
        """Return the recommended modes of frameworks whose eager mode is deployed, with their pairs."""
        chosen = [choice for choice in self.choices if choice.kind == USE and choice.deployed]
        return [(choice, pair) for choice in chosen if (pair := self.pair(choice.point))]


def by_setting(points: Points, known: Known) -> list[list[Answer]]:
    """Return an answer for each shape of every setting, settings with most frameworks first."""
    return [[_answer(one, shape, known) for shape in one.shapes] for one in settings(points, known)]


def _answer(setting: Setting, shape: Shape, known: Known) -> Answer:
    points = setting.at[shape]
    found = (choose(of_entrant, known) for of_entrant in entrants(points).values())
    choices = sorted(filter(None, found), key=lambda choice: _by_time(choice.point))
    named = {id(point) for one in choices for point in (one.point, one.beside, one.default)}
    rest = [point for point in points if not point.excluded and id(point) not in named]
    idle = [point for point in rest if not words_of(point, known).deployed]
    return Answer(
        setting,
        shape,
        tuple(choices),
        tuple(point for point in rest if point not in idle),
        tuple(idle),
        tuple(point for point in points if point.excluded),
        tuple(_elsewhere(setting, shape)),
    )


def _elsewhere(setting: Setting, shape: Shape) -> Iterable[Point]:
    """Yield the fastest point of each framework that ran the shape on other machines only, with most processes.

    A point whose time a slow host lengthened counts only where all are such.
    """
    here = {point.record.framework for point in setting.at[shape]}
    away = [p for p in setting.at_elsewhere.get(shape, ()) if p.record.framework not in here and not p.excluded]
    for group in grouped(away, lambda point: point.record.framework).values():
        most = max(point.record.processes or 0 for point in group)  # one process proves less than several
        yield min((p for p in group if (p.record.processes or 0) == most), key=_by_time)


def _by_time(point: Point) -> tuple[bool, float]:
    """Return a key that orders points by latency; those that a slow host lengthened come last."""
    return point.record.slowed, point.median_ms


@dataclass(frozen=True)
class Trust:
    """Basis of the figures: processes of each cell, comparisons with a reference, widths, and the machine's state."""

    cells: int
    processes: tuple[int, int]  # the fewest and the most
    compared: int  # cells whose outputs were compared; all of them agree
    within: tuple[int, int]  # figures within their target, and figures with one
    conditions: dict[str, int]  # cells by flag
    target: float | None  # the requested half-width; None where cells differ

    @property
    def few(self) -> bool:
        """Return whether some intervals rest on too few processes to cover another one."""
        return self.processes[0] < ENOUGH_PROCESSES

    @classmethod
    def from_records(cls, records: Sequence[Record]) -> Trust:
        """Return the trust that measured records support."""
        measured = [record for record in records if record.is_measured]
        aimed = [record for record in measured if record.target_half_width is not None]
        processes = [record.processes or 1 for record in measured]
        flags = Counter(name for record in measured for name in record.raised)
        targets = {record.target_half_width for record in measured}
        return cls(
            len(measured),
            (min(processes, default=0), max(processes, default=0)),
            sum(record.parity_reference is not None for record in measured),
            (sum(record.on_target for record in aimed), len(aimed)),
            {flag.name: flags[flag.name] for flag in FLAGS if flag.name in CONDITIONS and flags[flag.name]},
            targets.pop() if len(targets) == 1 else None,
        )


def best(found: Sequence[Answer]) -> tuple[Answer, Choice] | None:
    """Return the largest speedup that a framework's users get at any shape of a setting, with its shape.

    Without any the first choice of the first shape; None where nothing counts.
    """
    gains = [
        (choice.point.record.speedup_vs_eager or 0.0, answer, choice)
        for answer in found
        for choice, _ in answer.used
        if choice in answer.fastest
    ]
    if gains:
        return max(gains, key=lambda one: one[0])[1:]
    return next(((answer, answer.choices[0]) for answer in found if answer.choices), None)
