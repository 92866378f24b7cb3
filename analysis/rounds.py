"""What follows from processes in rounds: means over processes, and which of several strategies takes the least."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean

from measurement.statistics import Interval
from records.intervals import over_processes


def mean(values: Sequence[float]) -> Interval | None:
    """Return the mean over processes, one value each, with its 95 % interval; None for fewer than three."""
    return over_processes([[value] for value in values]) if len(values) > 2 else None


def typical(values: Sequence[float]) -> Interval | None:
    """Return the geometric mean over processes of positive values and its 95 % interval; None below three."""
    logs = mean([math.log(value) for value in values]) if all(value > 0 for value in values) else None
    return logs.map(math.exp) if logs else None


def least(figures: Mapping[str, Mapping[int, float]]) -> tuple[str, ...]:
    """Return the strategy with the least geometric mean and those that are not shown to take more, in the order given.

    `figures` holds by strategy a figure for each round. A strategy takes more where the ratio to the least, paired by
    round, has an interval above 1. A strategy with fewer than three rounds is none.
    """
    means = {name: fmean(map(math.log, ones.values())) for name, ones in figures.items() if len(ones) > 2}
    if not means:
        return ()
    best = min(means, key=lambda name: means[name])
    return tuple(name for name in means if name == best or not _more(figures[name], figures[best]))


def _more(one: Mapping[int, float], other: Mapping[int, float]) -> bool:
    found = mean([math.log(one[number] / other[number]) for number in one if number in other])
    return found is not None and found.low > 0
