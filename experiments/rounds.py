"""Claims on cells whose strategies ran in rounds of fresh processes: ratios paired by round, checked on every cell."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, TypeVar

from analysis.rounds import mean
from experiments.evidence import Evidence
from experiments.judge import above, inconclusive
from experiments.spec import ALL, Answer, Claim, all_of
from measurement.statistics import Interval


class Named(Protocol):
    """A cell, by its full name."""

    @property
    def name(self) -> str: ...


Cell = TypeVar("Cell", bound=Named)
Judge = Callable[[str, Interval | None], Answer]


def claim(
    sentence: str,
    cells: Callable[[Evidence], Sequence[Cell]],
    figure: Callable[[Cell], Interval | None],
    judge: Judge,
) -> Claim:
    """Return a claim on a figure, checked on every cell."""

    def check(evidence: Evidence) -> Answer:
        answers = [judge(cell_name(cell), figure(cell)) for cell in cells(evidence)]
        return all_of(answers) if answers else inconclusive("not run here")

    return Claim(sentence, check, of=ALL)


def ratio(values: Iterable[tuple[float, float]]) -> Interval | None:
    """Return the geometric mean of ratios, one pair of figures a round; None where a figure is not positive."""
    pairs = list(values)
    if any(min(both) <= 0 for both in pairs):
        return None  # a cost lost in the scatter has no ratio
    logs = mean([math.log(mine / theirs) for mine, theirs in pairs])
    return logs.map(math.exp) if logs else None


def cell_name(cell: Named) -> str:
    """Return the framework, the workload and its shape, for texts."""
    framework, workload, *_, parameters = cell.name.split("/")
    shape, *others = parameters.replace("batch_size=", "").replace(",seq_len=", "×").split(",")
    return " ".join((framework, workload, shape, *others[: 0 if "×" in shape else 1]))


def at_least(limit: float) -> Judge:
    """Return a judge of ratios above `limit`."""
    return lambda name, found: above(name, found, limit, "×")
