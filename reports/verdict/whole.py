"""The verdict on a setting: advice for each framework, the fastest at each shape, and who is not in that ranking."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from measurement.statistics import Interval, independent_ratio
from reports import facts
from reports.content import text_of
from reports.points import Point, Points, grouped, machine_of
from reports.verdict import wording
from reports.verdict.places import Known, Setting, Shape, Words, settings
from reports.verdict.rules import STAY, USE, Advice, advise, comparable, judge


@dataclass(frozen=True)
class Absent:
    """A framework's best at a shape that it ran on another machine, beside the fastest of this one."""

    point: Point
    machine: str
    first: Point

    @property
    def ratio(self) -> Interval | None:
        """Its time over the fastest one's of this machine."""
        known = self.point.latency, self.first.latency
        return independent_ratio(*known) if all(known) else None

    @property
    def sentence(self) -> str:
        """What it took, and what comparing across machines would say."""
        name, time = f"{self.point['framework']} {self.point['mode']}", text_of(self.point["latency_ms_median"])
        told = f"Not in this ranking: {name}, {time} ms on another machine, {self.machine}"
        if self.ratio is None:
            return f"{told}."
        longer = self.ratio.value >= 1
        value = self.ratio.value if longer else 1 / self.ratio.value
        ends = (self.ratio.low, self.ratio.high) if longer else (1 / self.ratio.high, 1 / self.ratio.low)
        return (
            f"{told}: across machines that is {wording.ratio(value)} the {'time' if longer else 'speed'} of "
            f"{self.first['framework']} {self.first['mode']} (95 %: {ends[0]:.2f} to {ends[1]:.2f}), "
            "of which some may be the machines'."
        )


@dataclass(frozen=True)
class Fastest:
    """The latencies at one shape: `ranks` of this machine, the fastest first, and the frameworks that are absent."""

    shape: Shape
    ranks: tuple[facts.Rank, ...]
    absent: tuple[Absent, ...]

    @property
    def sentence(self) -> str:
        """Who is fastest, in milliseconds, and who is next."""
        first = self.ranks[0].point
        time = text_of(first["latency_ms_median"])
        begun = f"At {self.shape.text}"
        second = next((rank for rank in self.ranks if facts.entrant(rank.point) != facts.entrant(first)), None)
        if second is None:
            return f"{begun}: {first.series}, {time} ms (no other framework was measured here)."
        other = f"{second.point.series}, {text_of(second.point['latency_ms_median'])} ms"
        if not second.told_apart:
            return f"{begun}: {first.series}, {time} ms, and {other}, cannot be told apart."
        longer = wording.ratio(second.ratio.value)
        return f"{begun} the fastest is {first.series}, {time} ms; then {other} ({longer} the time)."


@dataclass(frozen=True)
class Verdict:
    """All that is said of a setting."""

    setting: Setting
    advice: tuple[Advice, ...]
    machines: dict[tuple, str]
    contradictions: tuple[str, ...] = ()

    @property
    def sentences(self) -> list[str]:
        """One sentence for each piece of advice, with what it leaves out."""
        return [f"{wording.sentence(one)}{_noted(wording.cautions(one))}" for one in self.advice]

    @cached_property
    def fastest(self) -> dict[Shape, Fastest]:
        """The ranking at every shape."""
        return {shape: found for shape in self.setting.shapes if (found := self._fastest(shape))}

    def _fastest(self, shape: Shape) -> Fastest | None:
        points = [point for point in self.setting.at[shape] if comparable(point)]
        if not points:
            return None
        ranks = facts.ranking(points)
        here = {point["framework"] for point in self.setting.at[shape]}
        away = [p for p in self.setting.at_elsewhere.get(shape, ()) if p["framework"] not in here and comparable(p)]
        absent = []
        for group in grouped(away, lambda point: point["framework"]).values():
            best = min(group, key=lambda point: point["latency_ms_median"])
            absent.append(Absent(best, self.machines[machine_of(best.record)], ranks[0].point))
        return Fastest(shape, tuple(ranks), tuple(absent))


def _noted(parts: list[str]) -> str:
    return f" Note: {'; '.join(parts)}." if parts else ""


def of(points: Points, known: Known) -> list[Verdict]:
    """The verdict on every setting."""
    found = []
    for setting in settings(points):
        advice = []
        for own in setting.entrants.values():
            advice += _advice(own, known)
        found.append(Verdict(setting, tuple(advice), points.machines))
    return _contradicted(found)


def _advice(own: list[Point], known: Known) -> list[Advice]:
    framework = own[0]["framework"]
    deployed = known.get((framework, "eager"), Words()).deployed
    groups = grouped(own, lambda point: Shape.of(point.record))
    judged = [one for shape in sorted(groups) if (one := judge(shape, groups[shape], deployed))]
    return advise(framework, judged, known)


def _contradicted(verdicts: list[Verdict]) -> list[Verdict]:
    """With a sentence wherever one machine says to compile and another, of the same cell, not to."""
    told: dict[tuple, list[tuple[str, str, int]]] = {}
    for n, verdict in enumerate(verdicts):
        for advice in verdict.advice:
            for one in advice.judged:
                if advice.kind in (USE, STAY) and one.eager:
                    key = facts.shape_of(one.eager.record), advice.framework
                    machine = verdict.machines[machine_of(one.eager.record)]
                    told.setdefault(key, []).append((advice.kind, machine, n))
    extra: dict[int, list[str]] = {}
    for (shape, framework), entries in told.items():
        if len({kind for kind, *_ in entries}) > 1:
            where = Shape.of(dict(zip(("batch_size", "seq_len", "parameters"), shape[-3:], strict=True))).text
            sides = "; ".join(f"{'compile' if kind == USE else 'stay'} on {machine}" for kind, machine, _ in entries)
            for *_, n in entries:
                extra.setdefault(n, []).append(f"Machines contradict each other, {framework} at {where}: {sides}.")
    return [Verdict(one.setting, one.advice, one.machines, tuple(extra.get(n, ()))) for n, one in enumerate(verdicts)]


def sentences(verdicts: Iterable[Verdict]) -> list[str]:
    """Every sentence with its setting before it, as the terminal prints them."""
    return [
        f"{verdict.setting.name}: {sentence}"
        for verdict in verdicts
        for sentence in (*verdict.sentences, *verdict.contradictions)
    ]
