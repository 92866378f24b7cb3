"""Results of starts: time to the first answer, time per call afterwards, and the strategy to take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.rounds import Arm, arms, by_cell, fastest, mean, typical
from measurement.starts import WAYS
from measurement.statistics import Interval
from records.starts import StartRecord


@dataclass(frozen=True)
class Strategy(Arm[StartRecord]):
    """The processes of one strategy that gave correct answers, with those of eager mode in the same rounds."""

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

    def seconds(self, record: StartRecord, calls: float) -> float:
        """Return seconds of a process from exec until so many calls are answered."""
        return total_s(record, calls)


def total_s(record: StartRecord, calls: float) -> float:
    """Return seconds of a process from exec until so many calls are answered, at its steady latency."""
    return (record.first_answer_s or 0.0) + (calls - 1) * (record.steady_ms or 0.0) / 1000


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
        return fastest(there, calls)


def cells(records: Sequence[StartRecord]) -> list[Cell]:
    """Return the cells of a run's records."""
    return [Cell(name, tuple(own), tuple(arms(own, WAYS, Strategy))) for name, own in by_cell(records).items()]
