"""Steps in a series of runs: binary segmentation, a split being tested by Student's t.

Binary segmentation looks for the best split, and in both parts again (Sen and Srivastava, Annals of Statistics 3,
1975). Like Hunter's variant of E-divisive (Fleming et al., ICPE 2023), it tests splits by Student's t rather than by
permutations: few runs have few permutations. The differences of successive runs show how runs scatter (von Neumann,
Annals of Mathematical Statistics 12, 1941; here their median, which a few steps do not move). Each run's interval shows
how its processes scatter. The larger counts, so that two runs suffice and a drifting machine makes no steps.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np

from analysis.significance import CHANCE, Estimates
from measurement.statistics import Interval

FEWEST_SCATTERED = 4  # runs whose successive differences show their scatter, except at a step
# The deviation that goes with the median of |differences| of normal values, which have √2 times theirs.
DEVIATION = 1.4826 / math.sqrt(2)
Points = list[tuple[int, Estimates]]  # the place of each run in the series


@dataclass(frozen=True)
class Step:
    """A change of the level by this ratio, between run `at` and the cell's run before it."""

    at: int
    ratio: Interval


@dataclass(frozen=True)
class Scatter:
    """Deviation of runs from their common level, with degrees of freedom; unknown for a few runs."""

    deviation: float
    degrees: float

    @classmethod
    def from_points(cls, points: Points) -> Scatter:
        """Return the scatter with half as many degrees as differences.

        Their median is worth about half of their mean square.
        """
        means = [float(point.mean) for _, point in points]
        if len(means) < FEWEST_SCATTERED:
            return cls(0.0, 1.0)
        differences = [abs(b - a) for a, b in itertools.pairwise(means)]
        return cls(DEVIATION * median(differences), len(differences) / 2)


def steps(points: Sequence[Estimates | None], series: int = 1, floor: float = 0.0) -> list[Step]:
    """Return the steps of a series of logarithms in their order; `points` has one per run (None where it has none).

    A step is larger than the relative `floor`. Its chance, times the number of splits and of `series` (Bonferroni), is
    below `CHANCE`.
    """
    known = [(place, point) for place, point in enumerate(points) if point is not None]
    scatter = Scatter.from_points(known)
    cuts = sorted(_splits(known, 0, scatter, series, floor))
    changes = _changes(known, cuts, scatter)
    # A later split may lie at the change, so that an earlier one nearby has none.
    while idle := [n for n, one in enumerate(changes) if not _is_step(one, (len(known) - 1) * series, floor)]:
        cuts.pop(max(idle, key=lambda n: float(changes[n].chance)))
        changes = _changes(known, cuts, scatter)
    return [
        Step(known[cut][0], Interval(*map(float, change.interval))) for cut, change in zip(cuts, changes, strict=True)
    ]


def _changes(points: Points, cuts: Sequence[int], scatter: Scatter) -> list[Estimates]:
    """Return the change from each part's level to the next one's."""
    parts = itertools.pairwise([0, *cuts, len(points)])
    levels = [level(points[start:end], scatter) for start, end in parts if start < end]
    return [after - before for before, after in itertools.pairwise(levels)]


def _is_step(change: Estimates, tried: int, floor: float) -> bool:
    """Return whether a change exceeds chance, among so many tried, and the relative floor."""
    return float(change.chance) * tried < CHANCE and abs(float(change.mean)) > math.log1p(floor)


def _splits(points: Points, first: int, scatter: Scatter, series: int, floor: float) -> list[int]:
    """Return the places of the splits, counted from `first`."""
    if len(points) < 2:
        return []
    tried = [(n, level(points[n:], scatter) - level(points[:n], scatter)) for n in range(1, len(points))]
    split, change = min(tried, key=lambda one: (float(one[1].chance), -abs(float(one[1].mean))))
    if not _is_step(change, len(tried) * series, floor):
        return []
    rest = scatter, series, floor
    return [first + split, *_splits(points[:split], first, *rest), *_splits(points[split:], first + split, *rest)]


def level(points: Points, scatter: Scatter) -> Estimates:
    """Return the mean over runs; its error follows from their own errors, or from their larger scatter."""
    values = [point for _, point in points]
    variances = [float(point.error) ** 2 for point in values]
    error = math.sqrt(sum(variances)) / len(values)
    own = [float(point.degrees) for point in values]
    spread = sum(variance**2 / of_value for variance, of_value in zip(variances, own, strict=True))
    degrees = sum(variances) ** 2 / spread if spread else sum(own)  # for intervals without a width
    between = scatter.deviation / math.sqrt(len(values))
    if between > error:
        error, degrees = between, scatter.degrees
    mean = fmean(float(point.mean) for point in values)
    return Estimates(np.array(mean), np.array(error), np.array(degrees))
