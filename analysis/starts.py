"""Results of starts: time to the first answer, total time over calls, and the calls after which a strategy pays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from analysis.rounds import Arm, arms, by_cell, least, mean, typical
from measurement.starts import WAYS
from measurement.statistics import Interval
from records.starts import StartRecord

CALLS = (1, 100, 10_000, 1_000_000)
MOST_CALLS = 1e9
STEPS = 60  # of a bisection on a logarithmic axis: exact to 1e-9


@dataclass(frozen=True)
class BreakEven:
    """Calls from which a strategy's total is below eager mode's; `high` is infinite where that is not shown."""

    calls: float
    low: float
    high: float
    seconds: float  # until the process has answered so many calls


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

    @property
    def break_even(self) -> BreakEven | None:
        """Return the number of calls from which it takes less time than eager mode; None if there is none.

        The interval contains the numbers of calls at which the totals' paired log-ratio has an interval around 0.
        """

        def saved(calls: float) -> Interval:
            found = mean([math.log(total_s(base, calls) / total_s(one, calls)) for one, base in self.pairs])
            assert found is not None
            return found

        if len(self.pairs) < 3 or saved(MOST_CALLS).value <= 0:
            return None
        centre = _crossing(lambda calls: saved(calls).value > 0)
        low, high = _crossing(lambda calls: saved(calls).high > 0), _crossing(lambda calls: saved(calls).low > 0)
        eager_s = fmean(total_s(base, centre) for _, base in self.pairs)
        return BreakEven(centre, low, high, eager_s)


def total_s(record: StartRecord, calls: float) -> float:
    """Return seconds of a process from exec until so many calls are answered, at its steady latency."""
    return (record.first_answer_s or 0.0) + (calls - 1) * (record.steady_ms or 0.0) / 1000


def _crossing(holds: Callable[[float], bool]) -> float:
    """Return the number of calls from which a condition holds; infinite where it fails up to a billion."""
    if holds(1.0):
        return 1.0
    if not holds(MOST_CALLS):
        return math.inf
    low, high = 0.0, math.log(MOST_CALLS)
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if holds(math.exp(middle)) else (middle, high)
    return math.exp(high)


@dataclass(frozen=True)
class Cell:
    """The strategies of one cell, in their fixed order."""

    name: str
    record: StartRecord  # any of them, for common columns
    strategies: tuple[Strategy, ...]

    def choice(self, calls: int) -> tuple[str, ...]:
        """Return the strategy to take for so many calls, or all between which intervals do not decide.

        Variants of another strategy, and strategies with a wrong output in any process, are no choice. The fastest on
        average is the choice where the paired ratio of every other to it has an interval above 1.
        """
        there = [one for one in self.strategies if not WAYS[one.name].beside and not one.wrong]
        return least({one.name: {record.round: total_s(record, calls) for record in one.records} for one in there})


def cells(records: Sequence[StartRecord]) -> list[Cell]:
    """Return the cells of a run's records."""
    return [Cell(name, own[0], tuple(arms(own, WAYS, Strategy))) for name, own in by_cell(records).items()]
