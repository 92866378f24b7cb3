"""Statistics of processes in rounds: means over processes, pairs, and the strategy that takes the least time."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean
from typing import Generic, TypeVar

from analysis.points import grouped
from measurement.host import SLOW, full_seconds
from measurement.starts import EAGER
from measurement.statistics import ENOUGH_PROCESSES, Interval
from measurement.text import times
from records.intervals import over_processes
from records.process import ProcessRecord

Row = TypeVar("Row", bound=ProcessRecord)
Range = tuple[float, float]  # of calls; the second is infinite where the scan ends within the range
CALLS = (1, 100, 10_000, 1_000_000)  # for which strategies are recommended
SCANNED = tuple(10 ** (step / 20) for step in range(9 * 20 + 1))  # calls, 1 to a billion
STEPS = 30  # of a bisection between two of them: exact to 1e-9


def mean(values: Sequence[float]) -> Interval | None:
    """Return the mean over processes, one value each, with its 95 % interval; None for fewer than three."""
    return over_processes([[value] for value in values]) if len(values) >= ENOUGH_PROCESSES else None


def typical(values: Sequence[float]) -> Interval | None:
    """Return the geometric mean over processes of positive values and its 95 % interval; None below three."""
    logs = mean([math.log(value) for value in values]) if all(value > 0 for value in values) else None
    return logs.map(math.exp) if logs else None


def least(figures: Mapping[str, Mapping[int, float]]) -> tuple[str, ...]:
    """Return the strategy with the least geometric mean and those not shown to take more, in the order of means.

    `figures` holds by strategy a figure for each round. A strategy takes more where the ratio to the least, paired by
    round, has an interval above 1. So does one whose mean is above that of such a strategy. The result is empty while
    any strategy has fewer than three rounds.
    """
    if not figures or any(len(ones) < ENOUGH_PROCESSES for ones in figures.values()):
        return ()
    means = {name: fmean(map(math.log, ones.values())) for name, ones in figures.items()}
    best, *others = sorted(means, key=lambda name: means[name])
    more = next((place for place, name in enumerate(others) if _more(figures[name], figures[best])), len(others))
    return (best, *others[:more])


def on_slow_cores(records: Sequence[Row]) -> list[Row]:
    """Return the processes on slow host cores, by the rule for turns.

    The control loop's full speed is the fastest decile of the processes' medians.
    """
    full_ms = full_seconds([one.host_loop_ms for one in records if one.host_loop_ms])
    return [one for one in records if one.host_loop_ms and full_ms and one.host_loop_ms > SLOW * full_ms]


def _more(one: Mapping[int, float], other: Mapping[int, float]) -> bool:
    found = mean([math.log(one[number] / other[number]) for number in one if number in other])
    return found is not None and found.low > 0


@dataclass(frozen=True)
class Arm(ABC, Generic[Row]):
    """The processes of one strategy that gave correct answers, with those of eager mode in the same rounds."""

    name: str
    records: tuple[Row, ...]
    eager: dict[int, Row]
    reason: str = ""  # why there are none, or how many processes failed
    failed: bool = False  # whether any process gave no correct answer

    @cached_property
    def pairs(self) -> list[tuple[Row, Row]]:
        """Return its processes, each with eager mode's of its round."""
        return [(one, self.eager[one.round]) for one in self.records if one.round in self.eager]

    def average(self, figure: Callable[[Row], float | None]) -> float | None:
        """Return the mean of a figure over the processes; None where none has it."""
        known = [value for record in self.records if (value := figure(record)) is not None]
        return fmean(known) if known else None

    def over_eager(self, figure: Callable[[Row], float | None]) -> Interval | None:
        """Return a figure over eager mode's, paired by round; None for fewer than three pairs."""
        logs = mean([math.log((figure(one) or math.nan) / (figure(base) or math.nan)) for one, base in self.pairs])
        return logs.map(math.exp) if logs else None

    @abstractmethod
    def seconds(self, record: Row, calls: float) -> float:
        """Return the seconds that a process takes for so many calls."""

    def after(self, calls: float) -> Interval | None:
        """Return the seconds that so many calls take."""
        return typical([self.seconds(record, calls) for record in self.records])

    @property
    def extrapolates(self) -> bool:
        """Return whether its time for any number of calls is known in enough pairs."""
        ends = [self.seconds(record, SCANNED[-1]) for pair in self.pairs for record in pair]
        return len(self.pairs) >= ENOUGH_PROCESSES and not any(map(math.isnan, ends))

    @cached_property
    def pays(self) -> list[Range]:
        """Return the calls at which it takes less time than eager mode: the paired ratio's interval excludes 1."""
        return self._where(lambda saved: saved.low > 0)

    @cached_property
    def undecided(self) -> list[Range]:
        """Return the calls at which the interval of the paired ratio to eager mode includes 1."""
        return self._where(lambda saved: saved.low <= 0 <= saved.high)

    def _where(self, holds: Callable[[Interval], bool]) -> list[Range]:
        """Return the calls at which a condition on the log-ratio of eager mode's total to its own holds.

        Ratios need not change monotonically with the calls. So calls are scanned, and each change is bisected.
        """
        if not self.extrapolates:
            return []

        def held(calls: float) -> bool:
            found = mean([math.log(self.seconds(base, calls) / self.seconds(one, calls)) for one, base in self.pairs])
            return found is not None and holds(found)

        known = [(calls, held(calls)) for calls in SCANNED]
        edges = [known[0][0]] if known[0][1] else []
        for (low, before), (high, after) in itertools.pairwise(known):
            if before != after:
                edges.append(_change(held, low, high))
        return list(zip(edges[::2], [*edges[1::2], math.inf], strict=False))


AnyArm = TypeVar("AnyArm", bound=Arm)


def _change(held: Callable[[float], bool], low: float, high: float) -> float:
    """Return the calls between `low` and `high` at which a condition changes."""
    before = held(low)
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if held(middle) == before else (low, middle)
    return high


def fastest(there: Iterable[Arm], calls: float) -> tuple[str, ...]:
    """Return the strategy that takes the least time for so many calls, and those not shown to take more."""
    figures = {one.name: {record.round: one.seconds(record, calls) for record in one.records} for one in there}
    return () if any(math.isnan(value) for ones in figures.values() for value in ones.values()) else least(figures)


def by_cell(records: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the records of each cell under the same policies, which all processes of a run follow.

    Earlier versions did not write them: such records get those that a later version wrote after it resumed the run.
    """
    known = {(one.run_id, one.cell): one.policies for one in records if one.policies}
    filled = [replace(one, policies=known.get((one.run_id, one.cell))) for one in records]
    return grouped(filled, lambda one: ",".join(filter(None, (one.cell, one.policies))))


def arms(records: Sequence[Row], names: Iterable[str], make: Callable[..., AnyArm]) -> list[AnyArm]:
    """Return the arms of one cell's records, in the order of `names`; figures come from correct answers alone."""
    eager = {one.round: one for one in records if one.strategy == EAGER and one.is_right}
    found = []
    for name in names:
        its = [one for one in records if one.strategy == name]
        right = tuple(sorted((one for one in its if one.is_right), key=lambda one: one.round))
        if its:
            found.append(make(name, right, eager, *_failures(its)))
    return found


def _failures(records: Sequence[ProcessRecord]) -> tuple[str, bool]:
    """Return why a strategy has no figures or is not recommended, and whether any of its processes failed."""
    failed = [one for one in records if not one.is_right]
    if not failed:
        return "", False
    first = failed[0]
    if len(failed) == len(records):
        return f"{first.status}: {first.reason}", True
    kind = "wrong" if first.is_wrong else first.status
    return f"{kind} in {len(failed)} of {times(len(records), 'process', 'processes')}: {first.reason}", True
