"""From a run's samples to its ladders: the gain of each rung over the one before it, round by round."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import frameworks
from analysis.paired import rounds_in_turn
from measurement.statistics import Interval
from records.intervals import over_processes
from records.record import Record
from records.runs import Run
from records.shapes import SampleLine
from records.statuses import WORDS


@dataclass(frozen=True)
class Rung:
    """A measured mode of the ladder; `adds` is its addition to the measured one before it. `latency` is in ms."""

    mode: str
    adds: str
    median_ms: float
    latency: Interval | None


@dataclass(frozen=True)
class Step:
    """From one measured rung to the next: `ratio` is the time before over the time after, None without an interval."""

    before: Rung
    after: Rung
    ratio: Interval | None


@dataclass(frozen=True)
class Crossed:
    """Two rungs in both orders: the effect of each alone and on top of the other, and the difference.

    `interaction` is the first one's effect on top of the second over its effect alone; 1 where they multiply.
    """

    names: tuple[str, str]
    modes: tuple[str, str, str, str]  # with neither, the first, the second, both
    first: tuple[Interval, Interval]  # alone, and on top of the other
    second: tuple[Interval, Interval]
    whole: Interval
    interaction: Interval


@dataclass(frozen=True)
class Ladder:
    """The rungs of one framework at one shape; `since` has each rung's ratio to the first, measured directly.

    `largest` is the step with the largest gain, and the intervals do not separate it from `rivals`. `missing` are
    excluded rungs and those without figures, with the reason.
    """

    first: Record  # of the shape; the others differ in their mode
    rungs: tuple[Rung, ...]
    steps: tuple[Step, ...]
    since: tuple[Interval | None, ...]
    largest: Step | None = None
    rivals: tuple[Step, ...] = ()
    missing: tuple[tuple[str, str], ...] = ()
    crossed: Crossed | None = None
    processes: int = 0

    @cached_property
    def products(self) -> list[float | None]:
        """Return the product of the steps up to each rung; None from a step without a ratio on."""
        ratios = [step.ratio.value if step.ratio else math.nan for step in self.steps]
        products = itertools.accumulate(ratios, operator.mul, initial=1.0)
        return [None if math.isnan(value) else value for value in products] if self.rungs else []

    @property
    def product(self) -> float | None:
        """Return the product of all steps."""
        return self.products[-1] if self.steps else None

    @property
    def end_to_end(self) -> Interval | None:
        """Return the first rung's time over the last one's, measured directly."""
        return self.since[-1] if self.since else None


def of_run(folder: Path, records: Sequence[Record]) -> list[Ladder]:
    """Return the ladders in a run's records; reads the samples in its folder if there are any rungs."""
    if not any(is_rung(record) for record in records):
        return []
    return list(ladders_of(records, Run(folder).samples()))


def is_rung(record: Record) -> bool:
    """Return whether a record's mode exists in ladders alone."""
    return record.mode in _rungs(record.framework)


@functools.cache
def _rungs(framework: str) -> frozenset[str]:
    if framework not in frameworks.NAMES:
        return frozenset()
    description = frameworks.describe(framework)
    climbed = {rung.mode for rungs in description.ladders.values() for rung in rungs}
    climbed |= {mode for crossing in description.crossings.values() for mode in crossing.modes}
    return frozenset(mode.name for mode in description.modes if mode.is_rung and mode.name in climbed)


def ladders_of(records: Iterable[Record], samples: Iterable[SampleLine]) -> Iterable[Ladder]:
    """Return a ladder for each shape of a framework that was measured with rungs."""
    groups: dict[str, dict[str, Record]] = {}
    for record in records:
        groups.setdefault(record.group, {})[record.mode] = record
    taken = list(samples)
    for modes in groups.values():
        if any(map(is_rung, modes.values())):
            description = frameworks.describe(next(iter(modes.values())).framework)
            series = Series.from_samples(taken, {record.cell: mode for mode, record in modes.items()})
            yield ladder(modes, description, series)


@dataclass(frozen=True)
class Series:
    """Samples by process and mode; the modes of a process were timed in turn."""

    processes: tuple[Mapping[str, SampleLine], ...]

    @classmethod
    def from_samples(cls, samples: Iterable[SampleLine], modes: Mapping[str, str]) -> Series:
        """Return the series of these cells, by their modes.

        If a process measured a cell twice, the last counts; if it had several workers, the one with most cells.
        """
        latest = {(entry["launch"], entry["cell"]): entry for entry in samples if entry["cell"] in modes}
        workers: dict[int, Counter] = {}
        for (process, _), entry in latest.items():
            workers.setdefault(process, Counter())[entry.get("worker")] += 1
        most = {process: counts.most_common(1)[0][0] for process, counts in workers.items()}
        by_process: dict[int, dict[str, SampleLine]] = {process: {} for process in sorted(most)}
        for (process, cell), entry in latest.items():
            if entry.get("worker") == most[process] and entry["seconds_per_call"]:
                by_process[process][modes[cell]] = entry
        return cls(tuple(by_process.values()))

    def combined(self, weights: Mapping[str, float]) -> Interval | None:
        """Return the weighted sum of logarithms of seconds, paired in each round; None without an interval."""
        whole = [[process[mode] for mode in weights] for process in self.processes if weights.keys() <= process.keys()]
        signs, rounds = list(weights.values()), rounds_in_turn(whole)
        return over_processes([[sum(map(operator.mul, signs, values)) for values in process] for process in rounds])

    def ratio(self, weights: Mapping[str, float]) -> Interval | None:
        """Return the same as a ratio of times."""
        interval = self.combined(weights)
        return interval.map(math.exp) if interval else None


def ladder(records: Mapping[str, Record], description: frameworks.Framework, series: Series) -> Ladder:
    """Return the ladder of one shape: `records` by mode.

    The next rung includes the addition of a rung without figures.
    """
    rungs: list[Rung] = []
    missing: list[tuple[str, str]] = []
    adds: list[str] = []
    first = next(iter(records.values()))
    place = first.device_kind, first.pass_name or ""
    for rung in (rung for rung in description.ladder(*place) if rung.mode in records):
        record = records[rung.mode]
        why = record.excluded
        if why or record.latency_ms_median is None:
            missing.append((rung.mode, WORDS.get(why or "") or record.reason or record.status))
            adds += [rung.adds] if rung.kept and rungs else []
            continue
        rungs.append(Rung(record.mode, "; ".join([*adds, rung.adds]), record.median_ms, record.latency))
        adds = []
    steps = [Step(low, high, series.ratio(_step(low, high))) for low, high in itertools.pairwise(rungs)]
    largest, rivals = _largest(_strides(steps, series), series)
    since = [Interval(1.0, 1.0, 1.0), *(series.ratio(_step(rungs[0], rung)) for rung in rungs[1:])] if rungs else []
    return Ladder(
        first,
        rungs=tuple(rungs),
        steps=tuple(steps),
        since=tuple(since),
        largest=largest,
        rivals=tuple(rivals),
        missing=tuple(missing),
        crossed=crossed(description, place, records, series),
        processes=len(series.processes),
    )


def _step(before: Rung, after: Rung) -> dict[str, float]:
    """Return the weights of logarithms that make a step."""
    return {before.mode: 1.0, after.mode: -1.0}


def _strides(steps: Sequence[Step], series: Series) -> list[Step]:
    """Return the steps; one that is shown to be slower is joined with the next.

    Else a step that only regains the loss would count as a gain.
    """
    strides: list[Step] = []
    lost: Step | None = None
    for step in steps:
        if lost:
            after = replace(step.after, adds=f"{lost.after.adds}; {step.after.adds}")
            step = Step(lost.before, after, series.ratio(_step(lost.before, after)))
        lost = step if step.ratio and step.ratio.high < 1 else None
        strides += [] if lost else [step]
    return strides


def _largest(steps: Sequence[Step], series: Series) -> tuple[Step | None, list[Step]]:
    """Return the step with the largest gain, if any is shown to gain, and those not shown to gain less.

    None where a step has no interval, which may be the largest. Two steps are compared round by round as well, since a
    slow round falls on both.
    """
    shown = [(step.ratio.value, n) for n, step in enumerate(steps) if step.ratio and step.ratio.low > 1]
    if not shown or any(step.ratio is None for step in steps):
        return None, []
    largest = steps[max(shown, key=lambda one: one[0])[1]]
    rivals = []
    for step in steps:
        if step is largest:
            continue
        weights = Counter(_step(largest.before, largest.after))
        weights.subtract(_step(step.before, step.after))
        difference = series.combined({mode: weight for mode, weight in weights.items() if weight})
        if difference is None or difference.low <= 0:
            rivals.append(step)
    return largest, rivals


def crossed(
    description: frameworks.Framework, place: tuple[str, str], records: Mapping[str, Record], series: Series
) -> Crossed | None:
    """Return the effects of two rungs in either order, on a device in a pass; None where a mode lacks figures."""
    crossing = description.crossing(*place)
    if crossing is None or any(mode not in records or records[mode].excluded for mode in crossing.modes):
        return None
    neither, first, second, both = crossing.modes
    found = [
        series.ratio(weights)
        for weights in (
            {neither: 1, first: -1},
            {second: 1, both: -1},
            {neither: 1, second: -1},
            {first: 1, both: -1},
            {neither: 1, both: -1},
            {second: 1, both: -1, neither: -1, first: 1},
        )
    ]
    ratios = [ratio for ratio in found if ratio]
    if len(ratios) < len(found):
        return None
    return Crossed(
        crossing.names,
        (neither, first, second, both),
        (ratios[0], ratios[1]),
        (ratios[2], ratios[3]),
        whole=ratios[4],
        interaction=ratios[5],
    )
