"""Results of starts: time to the first answer, total time over calls, and the calls at which a strategy pays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from analysis.rounds import Arm, arms, by_cell, least, mean, typical
from measurement.starts import WAYS
from measurement.statistics import ENOUGH_PROCESSES, Interval
from records.starts import StartRecord

CALLS = (1, 100, 10_000, 1_000_000)
SCANNED = tuple(10 ** (step / 20) for step in range(9 * 20 + 1))  # calls, 1 to a billion
STEPS = 30  # of a bisection between two of them: exact to 1e-9
Range = tuple[float, float]  # of calls; the second is infinite where the scan ends within the range


@dataclass(frozen=True)
class Strategy(Arm[StartRecord]):
    """The processes of one strategy that gave right answers, with those of eager mode in the same rounds."""

    @property
    def first(self) -> Interval | None:
        """Return seconds to the first answer."""
        return typical([record.first_answer_s or 0.0 for record in self.records])

    @property
    def steady(self) -> Interval | None:
        """Return milliseconds per call afterwards."""
        return typical([record.steady_ms or 0.0 for record in self.records])

    @property
    def difference(self) -> Interval | None:
        """Return seconds more than eager mode to the first answer, paired by round."""
        return mean([(one.first_answer_s or 0.0) - (base.first_answer_s or 0.0) for one, base in self.pairs])

    @property
    def ratio(self) -> Interval | None:
        """Return its time to the first answer over eager mode's, paired by round."""
        return self.over_eager(lambda record: record.first_answer_s)

    def total(self, calls: float) -> Interval | None:
        """Return seconds from exec until so many calls are answered."""
        return typical([total_s(record, calls) for record in self.records])

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
        if len(self.pairs) < ENOUGH_PROCESSES:
            return []

        def held(calls: float) -> bool:
            found = mean([math.log(total_s(base, calls) / total_s(one, calls)) for one, base in self.pairs])
            return found is not None and holds(found)

        known = [(calls, held(calls)) for calls in SCANNED]
        edges = [known[0][0]] if known[0][1] else []
        for (low, before), (high, after) in itertools.pairwise(known):
            if before != after:
                edges.append(_change(held, low, high))
        return list(zip(edges[::2], [*edges[1::2], math.inf], strict=False))


def total_s(record: StartRecord, calls: float) -> float:
    """Return seconds of a process from exec until so many calls are answered, at its steady latency."""
    return (record.first_answer_s or 0.0) + (calls - 1) * (record.steady_ms or 0.0) / 1000


def _change(held: Callable[[float], bool], low: float, high: float) -> float:
    """Return the calls between `low` and `high` at which a condition changes."""
    before = held(low)
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if held(middle) == before else (low, middle)
    return high


@dataclass(frozen=True)
class Cell:
    """The strategies of one cell, in their fixed order."""

    name: str
    records: tuple[StartRecord, ...]
    strategies: tuple[Strategy, ...]

    @property
    def record(self) -> StartRecord:
        """Return any of the records, for common columns."""
        return self.records[0]

    def choice(self, calls: int) -> tuple[str, ...]:
        """Return the strategy to take for so many calls, or all between which intervals do not decide.

        Variants of another strategy, and strategies that failed in any process, are no choice. The fastest on average
        is the choice where the paired ratio of every other to it has an interval above 1.
        """
        there = [one for one in self.strategies if not WAYS[one.name].beside and not one.failed]
        return least({one.name: {record.round: total_s(record, calls) for record in one.records} for one in there})


def cells(records: Sequence[StartRecord]) -> list[Cell]:
    """Return the cells of a run's records."""
    return [Cell(name, tuple(own), tuple(arms(own, WAYS, Strategy))) for name, own in by_cell(records).items()]
