"""Results of streams: total time by strategy, time of later calls, and the strategy to take."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, median

from analysis import rounds
from analysis.rounds import fastest, typical
from frameworks import policies
from frameworks.policies import Policy
from measurement.statistics import Interval
from measurement.streams import CACHES, STRATEGIES
from records.streams import StreamRecord


@dataclass(frozen=True, kw_only=True)
class Arm(rounds.Arm[StreamRecord]):
    """The processes of one strategy with one kind of caches that gave right outputs, and eager mode's of the rounds."""

    caches: str

    @property
    def total(self) -> Interval | None:
        """Return seconds of the whole stream."""
        return typical([record.total_s or 0.0 for record in self.records])

    @property
    def ratio(self) -> Interval | None:
        """Return eager mode's whole time over its own, paired by round."""
        return self.over_eager(lambda record: 1 / record.total_s if record.total_s else None)

    @property
    def slower(self) -> float | None:
        """Return how many calls are slower than eager mode's median call, a mean over processes."""
        usual = {number: median(record.calls) for number, record in self.eager.items()}
        counts = [sum(call > usual[one.round] for call in one.calls) for one, _ in self.pairs]
        return fmean(counts) if counts else None

    @property
    def fell_back(self) -> int | None:
        """Return the earliest call that ran no graph, from 1; None where there is none."""
        return min((record.fell_back for record in self.records if record.fell_back), default=None)

    @property
    def miscounted(self) -> bool:
        """Return whether the framework's own counter differs from the suite's in any process."""
        return any("miscounted" in (record.flags or "") for record in self.records)

    @property
    def policies_on_new_shapes(self) -> list[Policy]:
        """Return the policies whose default may make first calls of shapes slow, where the process followed it."""
        one = self.records[0]
        found = policies.of_new_shapes(one.framework, one.device.partition(":")[0], one.dtype)
        fused = "attention=fused" in one.cell
        return [policy for policy in found if fused and policy.name not in (one.policies or "")]

    def seconds(self, record: StreamRecord, calls: float) -> float:
        """Return seconds of the first calls; beyond the stream's end with lengths that it lacks, and later calls."""
        served = (record.setup_s or 0.0) + sum(record.calls[: int(calls)])
        if calls <= len(record.calls):
            return served
        if record.later_ms is None or record.unseen_s is None:
            return math.nan
        return served + record.unseen_s + (calls - len(record.calls)) * record.later_ms / 1000


@dataclass(frozen=True)
class Cell:
    """The arms of one cell; strategies keep their fixed order."""

    name: str
    records: tuple[StreamRecord, ...]
    arms: tuple[Arm, ...]

    @property
    def record(self) -> StreamRecord:
        """Return any of the records, for common columns."""
        return self.records[0]

    @property
    def number(self) -> int | None:
        """Return the calls of the stream; None without any process that served it."""
        return next((arm.records[0].number for arm in self.arms if arm.records), None)

    def with_caches(self, caches: str) -> list[Arm]:
        """Return the arms with one kind of caches."""
        return [arm for arm in self.arms if arm.caches == caches]

    def choice(self, caches: str, calls: float) -> tuple[str, ...]:
        """Return the strategy that takes the least time for so many calls, or all that intervals do not exclude.

        The fastest on average is the choice where the paired ratio of every other to it has an interval above 1. A
        strategy that fell back to eager mode, or failed in any process, is no choice.
        """
        return fastest(self.compared(caches), calls)

    def compared(self, caches: str) -> list[Arm]:
        """Return the arms among which `choice` chooses."""
        failed = {arm.name for arm in self.arms if arm.failed}
        return [arm for arm in self.with_caches(caches) if not arm.fell_back and arm.name not in failed]


def cells(records: Sequence[StreamRecord]) -> list[Cell]:
    """Return the cells of a run's records."""
    found = []
    for name, own in rounds.by_cell(records).items():
        arms: list[Arm] = []
        for caches in CACHES:
            mine = [record for record in own if record.caches == caches]
            arms += rounds.arms(mine, STRATEGIES, partial(Arm, caches=caches))
        found.append(Cell(name, tuple(own), tuple(arms)))
    return found
