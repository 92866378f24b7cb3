"""The rules: what one framework's records say of each shape, and which shapes share one piece of advice.

1. A mode counts where it is not excluded (`records.statuses`; what is, is named) and its speedup has an interval.
   Conditions that flags describe change nothing here; a program that is not known is named.
2. A mode is *faster* where all of its speedup's interval lies above 1 and its median lies below eager's; where the two
   disagree, the records contradict each other and nothing is said of it.
3. Of the faster modes the one with the lowest latency is *best*, and every other faster one whose latency is not shown
   to be longer is as good. Shapes share the mode that is best, or as good, at most of them, and one sentence as long
   as their speedups are within a factor of `ALIKE`; where the default mode is as good at all of these, it is named.
4. No mode faster: *stay* with eager where all are shown to be slower or no faster than `GAIN`; else *inconclusive*.
5. Where nobody deploys eager mode, modes are compared with each other alone, by latency.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analysis import facts
from analysis.points import Point
from analysis.settings import Known, Shape, Words, deployed
from analysis.significance import ratio_of_latencies
from measurement.statistics import INCONCLUSIVE, Interval

USE, STAY = "use", "stay"
# A mode whose interval ends below this is no reason to compile.
GAIN = 1.02
ALIKE = 2.0  # the most by which speedups in one sentence differ


@dataclass(frozen=True)
class Judged:
    """What a framework's records say of one shape: the best mode first, then those that may be as good."""

    shape: Shape
    kind: str
    eager: Point | None
    choices: tuple[Point, ...]
    others: tuple[Point, ...]  # graph modes that count and were not chosen
    excluded: tuple[Point, ...]
    contradicting: tuple[Point, ...]

    def mode(self, name: str) -> Point | None:
        """Return the point of a mode that counts."""
        return next((point for point in (*self.choices, *self.others) if point.record.mode == name), None)


@dataclass(frozen=True)
class Advice:
    """What to do at shapes of one framework on one machine: `judged` are those that share it."""

    kind: str
    framework: str
    mode: str
    words: Words
    judged: tuple[Judged, ...]
    default: str | None = None  # the mode that the framework's users start with
    deployed: bool = True  # whether anybody deploys its eager mode

    @property
    def chosen(self) -> list[Point]:
        """Return the recommended mode's point at each shape; eager's where the advice is to stay."""
        if self.kind == STAY:
            return [judged.eager for judged in self.judged if judged.eager]
        return [point for judged in self.judged if (point := judged.mode(self.mode))]

    @property
    def speedups(self) -> list[Interval]:
        """Return the recommended mode's speedups over eager."""
        return [point.speedup for point in self.chosen if point.speedup and not point.eager]

    @property
    def pairs(self) -> list[facts.Pair]:
        """Return the recommended mode beside eager."""
        return [
            facts.Pair(judged.eager, point)
            for judged in self.judged
            if judged.eager and (point := judged.mode(self.mode))
        ]


def judge(shape: Shape, points: Sequence[Point], baseline: bool) -> Judged | None:
    """Return what the points of one framework at one shape say; None where there is nothing to choose from.

    `baseline` says whether eager mode is one, which it is where it is deployed.
    """
    excluded = tuple(point for point in points if point.excluded)
    counting = [point for point in points if not point.excluded]
    eager = next((point for point in counting if point.eager), None)
    graphs = [point for point in counting if not point.eager]
    if not graphs and not excluded:
        return None
    choices: list[Point] = []
    contradicting: list[Point] = []
    if not baseline:
        kind, choices = (USE, _best(graphs)) if graphs else (INCONCLUSIVE, [])
    elif eager is None:
        if not any(point.eager for point in excluded):
            return None
        kind = INCONCLUSIVE  # a speedup over an excluded eager mode says nothing
    else:
        kind, choices, contradicting = _against(eager, graphs)
    others = tuple(point for point in graphs if point not in choices)
    return Judged(shape, kind, eager, tuple(choices), others, excluded, tuple(contradicting))


def _against(eager: Point, graphs: list[Point]) -> tuple[str, list[Point], list[Point]]:
    """Apply rules 2 to 4: the kind of advice, the modes to choose from, those whose records contradict each other."""
    contradicting = [point for point in graphs if _contradicts(point, eager)]
    sound = [point for point in graphs if point not in contradicting]
    faster = [
        point
        for point in sound
        if (gain := point.speedup) and facts.verdict(gain) == facts.FASTER and gain.high >= GAIN
    ]
    if faster:
        return USE, _best(faster), contradicting
    untold = [point for point in sound if point.speedup is None or point.speedup.high >= GAIN]
    if untold or contradicting or not graphs:
        return INCONCLUSIVE, _best(untold), contradicting
    return STAY, [], contradicting


def _contradicts(point: Point, eager: Point) -> bool:
    """Return whether the speedup, made of pairs, and the two medians are on different sides of 1 beyond doubt."""
    told = facts.verdict(point.speedup)
    medians = ratio_of_latencies(eager.record, point.record)
    if medians is None or told not in facts.DIFFERENT:
        return False
    return medians.high < 1 if told == facts.FASTER else medians.low > 1


def _best(points: list[Point]) -> list[Point]:
    """Return the fastest, then every point whose latency is not shown to be longer."""
    ordered = sorted(points, key=lambda point: point.median_ms)
    return [point for point in ordered if point is ordered[0] or not slower(point, ordered[0])]


def slower(point: Point, first: Point) -> bool:
    """Return whether the intervals say that a point takes longer."""
    ratio = ratio_of_latencies(point.record, first.record)
    return ratio is not None and ratio.low > 1


def advise(framework: str, judged: Sequence[Judged], known: Known) -> list[Advice]:
    """Return one piece of advice for the shapes that share a kind, a mode and about the same gain."""
    default = next((mode for (name, mode), words in known.items() if name == framework and words.default), None)
    baseline = deployed(framework, known)
    advice = []
    for kind in (USE, STAY, INCONCLUSIVE):
        for mode, part in _parts([one for one in judged if one.kind == kind], split=kind == USE and baseline):
            if default and all(default in [point.record.mode for point in one.choices] for one in part):
                mode = default
            words = known.get((framework, mode), Words())
            advice.append(Advice(kind, framework, mode, words, tuple(part), default, baseline))
    return advice


def _parts(rest: list[Judged], split: bool) -> Iterator[tuple[str, list[Judged]]]:
    """Return shapes by the mode that they share; split where their speedups lie too far apart."""
    while rest:
        mode = _shared(rest)
        alike_shapes = [one for one in rest if mode in ("", *(point.record.mode for point in one.choices))]
        rest = [one for one in rest if one not in alike_shapes]
        while split and alike_shapes:
            gains = [point.record.speedup_vs_eager or 0.0 for one in alike_shapes if (point := one.mode(mode))]
            alike = [one for one, gain in zip(alike_shapes, gains, strict=True) if gain * ALIKE >= max(gains)]
            yield mode, alike
            alike_shapes = [one for one in alike_shapes if one not in alike]
        if alike_shapes:
            yield mode, alike_shapes


def _shared(judged: Sequence[Judged]) -> str:
    """Return the mode that is best or as good at most shapes; among equals the best at most, then the first."""
    every = Counter(point.record.mode for one in judged for point in one.choices)
    first = Counter(one.choices[0].record.mode for one in judged if one.choices)
    return max(every, key=lambda mode: (every[mode], first[mode]), default="")
