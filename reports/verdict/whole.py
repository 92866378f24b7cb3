"""The verdict on a setting: advice for each framework, the fastest at each shape, and who is not in that ranking."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from analysis import facts
from analysis.points import Point, Points, grouped
from analysis.rules import STAY, USE, Advice, advise, judge
from analysis.settings import Known, Setting, Shape, deployed, entrants, settings
from analysis.significance import ratio_of_latencies
from measurement.statistics import Interval
from reports.numbers import ratio, span, text_of
from reports.verdict import wording

WORDS = {USE: "compile", STAY: "stay"}
UNLIKE = "Libraries' models differ in more than the framework; IMPL=plain runs the same operators in each."


@dataclass(frozen=True)
class Absent:
    """A framework's best at a shape that it ran on another machine, beside the fastest of this one."""

    point: Point
    machine: str
    first: Point

    @property
    def ratio(self) -> Interval | None:
        """Return its time over the fastest one's of this machine."""
        return ratio_of_latencies(self.point.record, self.first.record)

    @property
    def time(self) -> str:
        """Return what it took, and where."""
        time = text_of(self.point.median_ms)
        processes = ", one process" if self.point.record.launches == 1 else ""
        name = f"{self.point.record.framework} {self.point.record.mode}"
        return f"{name}, {time} ms on {self.machine}{processes}"

    @property
    def sentence(self) -> str:
        """Return what it took, and what comparing across machines would say."""
        told = f"not ranked: {self.time}"
        if self.ratio is None:
            return told
        longer = self.ratio.value >= 1
        value = self.ratio.value if longer else 1 / self.ratio.value
        low, high = (self.ratio.low, self.ratio.high) if longer else (1 / self.ratio.high, 1 / self.ratio.low)
        return (
            f"{told}: {ratio(value)}× the {'time' if longer else 'speed'} of the fastest here "
            f"({wording.certain(Interval(value, low, high))})"
        )


@dataclass(frozen=True)
class Fastest:
    """The latencies at one shape: `ranks` of this machine, the fastest first, and the frameworks that are absent."""

    shape: Shape
    ranks: tuple[facts.Rank, ...]
    absent: tuple[Absent, ...]

    @property
    def second(self) -> facts.Rank | None:
        """Return the fastest of those that are not the winner's own framework."""
        first = facts.entrant(self.ranks[0].point)
        return next((rank for rank in self.ranks if facts.entrant(rank.point) != first), None)

    @property
    def alike(self) -> list[Point]:
        """Return the winner's other modes that are not shown to be slower."""
        first, *others = self.ranks
        best = facts.entrant(first.point)
        return [rank.point for rank in others if facts.entrant(rank.point) == best and not rank.told_apart]

    @property
    def sentence(self) -> str:
        """Return who is fastest, in milliseconds, and who is next."""
        first = self.ranks[0].point
        begun, fastest, second = f"At {self.shape.text}", _timed(first), self.second
        if second is None:
            return f"{begun}: {fastest} (no other framework was measured here)."
        if second.ratio is None or not second.told_apart:
            return f"{begun}: {_known(first)}, and {_known(second.point)}, are not shown to differ."
        other = _timed(second.point)
        alike = f" ({', '.join(map(_timed, self.alike))}, may be as fast)" if self.alike else ""
        longer = f"{ratio(second.ratio.value)}× the time, {wording.certain(second.ratio)}"
        return f"{begun} the fastest is {fastest}{alike}; then {other} ({longer})."


def _timed(point: Point) -> str:
    return f"{point.series}, {text_of(point.median_ms)} ms"


def _known(point: Point) -> str:
    """Return a time with its interval, which shows why two may be alike: `jax jit, 0.672 ms (95 %: 0.293 to 1.54)`."""
    sure = f" (95 %: {span(point.latency.low, point.latency.high)})" if point.latency else ""
    return _timed(point) + sure


@dataclass(frozen=True)
class Verdict:
    """All that is said of a setting; made when it is asked for, since a report of many settings shows the first."""

    setting: Setting
    machines: dict[tuple, str]
    known: Known

    @cached_property
    def advice(self) -> tuple[Advice, ...]:
        """Return what to do, for each framework and the shapes that share it."""
        return tuple(one for points in self.setting.entrants.values() for one in _advice(points, self.known))

    @cached_property
    def contradictions(self) -> tuple[str, ...]:
        """Return a sentence wherever this machine says to compile a cell and another not to, or the other way."""
        there = [
            advice
            for (framework, _), points in entrants(self.setting.elsewhere).items()
            if framework not in self.setting.strangers
            for advice in _advice(points, self.known)
        ]
        contradictions = []
        for (framework, shape), (kind, machine) in self._kinds(self.advice).items():
            for other_kind, other in _told(there, framework, shape, self.machines):
                if {kind, other_kind} == {USE, STAY}:
                    sides = f"{WORDS[kind]} on {machine}; {WORDS[other_kind]} on {other}"
                    contradictions.append(f"Machines contradict each other, {framework} at {shape.text}: {sides}.")
        return tuple(contradictions)

    def _kinds(self, advice: Iterable[Advice]) -> dict[tuple, tuple[str, str]]:
        return {
            (one.framework, judged.shape): (one.kind, self.machines[judged.eager.record.machine])
            for one in advice
            for judged in one.judged
            if judged.eager
        }

    @property
    def sentences(self) -> list[str]:
        """Return each piece of advice, then what to be careful about."""
        return [f"{wording.sentence(one)} {wording.cautions(one)}".rstrip() for one in self.advice]

    @property
    def unlike(self) -> str:
        """Return what to know before frameworks are ranked by their libraries' models; empty where they are not."""
        frameworks = {point.record.framework for point in self.setting.points} | self.setting.strangers
        return UNLIKE if self.setting.points[0].record.implementation == "library" and len(frameworks) > 1 else ""

    @cached_property
    def fastest(self) -> dict[Shape, Fastest]:
        """Return the ranking at every shape."""
        return {shape: ranking for shape in self.setting.shapes if (ranking := self._fastest(shape))}

    def _fastest(self, shape: Shape) -> Fastest | None:
        points = [point for point in self.setting.at[shape] if not point.excluded]
        if not points:
            return None
        ranks = facts.ranking(points)
        here = {point.record.framework for point in self.setting.at[shape]}
        others = self.setting.at_elsewhere.get(shape, ())
        away = [point for point in others if point.record.framework not in here and not point.excluded]
        absent = []
        for group in grouped(away, lambda point: point.record.framework).values():
            most = max(point.record.launches or 0 for point in group)  # one process says less than several
            best = min((p for p in group if (p.record.launches or 0) == most), key=lambda p: p.median_ms)
            absent.append(Absent(best, self.machines[best.record.machine], ranks[0].point))
        return Fastest(shape, tuple(ranks), tuple(absent))


def verdicts_of(points: Points, known: Known) -> list[Verdict]:
    """Return the verdict on every setting."""
    return [Verdict(setting, points.machines, known) for setting in settings(points, known)]


def _advice(points: list[Point], known: Known) -> list[Advice]:
    framework = points[0].record.framework
    groups = grouped(points, lambda point: Shape.of(point.record))
    baseline = deployed(framework, known)
    judged = [one for shape in sorted(groups) if (one := judge(shape, groups[shape], baseline))]
    return advise(framework, judged, known)


def _told(
    advice: Iterable[Advice], framework: str, shape: Shape, machines: Mapping[tuple, str]
) -> Iterator[tuple[str, str]]:
    """Yield the kinds of advice for a framework at a shape, each with the name of its machine."""
    for one in advice:
        for judged in one.judged:
            if one.framework == framework and judged.shape == shape and judged.eager:
                yield one.kind, machines[judged.eager.record.machine]


def sentences(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Return every sentence with its setting before it, as the terminal prints them."""
    for verdict in verdicts:
        for sentence in (*verdict.sentences, *verdict.contradictions):
            yield f"{verdict.setting.name}: {sentence}"
