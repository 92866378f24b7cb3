"""Claims on cells whose strategies ran in rounds of fresh processes: ratios paired by round, checked on every cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from analysis.rounds import Row, mean, on_slow_cores
from experiments.evidence import Evidence
from experiments.judge import Estimate, above, inconclusive
from experiments.spec import ALL, Answer, Claim, all_of
from measurement.statistics import ENOUGH_PROCESSES, Interval
from records.process import ProcessRecord
from reports.numbers import SLOWED


class Named(Protocol):
    """A cell, by its full name, and its processes."""

    @property
    def name(self) -> str: ...

    @property
    def records(self) -> Sequence[ProcessRecord]: ...


Cell = TypeVar("Cell", bound=Named)
Judge = Callable[[str, Estimate], Answer]


def claim(
    sentence: str,
    cells: Callable[[Evidence], Sequence[Cell]],
    figure: Callable[[Cell], Estimate],
    judge: Judge,
    compared: Sequence[str],
    devices: tuple[str, ...] = ("cpu", "gpu"),
) -> Claim:
    """Return a claim on a figure of `compared` strategies, checked on every cell in which all of them ran."""

    def check(evidence: Evidence) -> Answer:
        usual = (cell for cell in cells(evidence) if not cell.records[0].policies)
        ran = [cell for cell in usual if {one.strategy for one in cell.records} >= set(compared)]
        answers = [judge(cell_name(cell), figure(cell)) for cell in ran]
        return all_of(answers) if answers else inconclusive("not run here")

    return Claim(sentence, check, of=ALL, devices=devices)


def paired(
    processes: Sequence[Row], groups: Sequence[tuple[Row, ...]], figures: Callable[..., tuple[float, float]]
) -> Estimate:
    """Return the geometric mean of ratios over rounds, each with the `figures` of its group of processes.

    Rounds with a process on a slow core, of all `processes`, do not count; the reason where fewer than three remain.
    """
    slow = on_slow_cores(processes)
    fast = [group for group in groups if not any(one in slow for one in group)]
    if len(fast) < ENOUGH_PROCESSES <= len(groups):
        return SLOWED
    return ratio(figures(*group) for group in fast)


def ratio(values: Iterable[tuple[float, float]]) -> Interval | None:
    """Return the geometric mean of ratios, one pair of figures a round; None where a figure is not positive."""
    pairs = list(values)
    if any(min(both) <= 0 for both in pairs):
        return None  # a cost lost in the scatter has no ratio
    logs = mean([math.log(mine / theirs) for mine, theirs in pairs])
    return logs.map(math.exp) if logs else None


def cell_name(cell: Named) -> str:
    """Return the framework, the workload, its shape, and policies, for texts."""
    framework, workload, *_, parameters = cell.records[0].cell.split("/")
    shape, *others = parameters.replace("batch_size=", "").replace(",seq_len=", "×").split(",")
    policies = filter(None, [cell.records[0].policies])
    return " ".join((framework, workload, shape, *others[: 0 if "×" in shape else 1], *policies))


def at_least(limit: float) -> Judge:
    """Return a judge of ratios above `limit`."""
    return lambda name, found: above(name, found, limit, "×")
