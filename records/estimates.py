"""Estimates on logarithms of times, and the ratios of independent ones.

All values are arrays with one element per cell: a comparison may have a hundred thousand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from measurement.statistics import ENOUGH_PROCESSES, Interval
from records.intervals import CONFIDENCE

SMALLEST = 1e-12  # standard error, so that nothing is divided by zero


@dataclass(frozen=True)
class Estimates:
    """Means over processes on a logarithmic scale, with their standard errors and degrees of freedom."""

    mean: np.ndarray
    error: np.ndarray
    degrees: np.ndarray

    @classmethod
    def from_arrays(cls, values: Interval, processes: np.ndarray) -> Estimates:
        """Return estimates from 95 % intervals of Student's t over so many processes; the mean is the logarithm.

        The error includes the widening of an interval (`records.intervals.correction`). The interval of fewer than
        three processes counts as one of known error, which gives wider differences; no verdict rests on it.
        """
        degrees = degrees_of(processes)
        error = np.log(values.high / values.low) / 2 / quantile(degrees)
        return cls(np.log(values.value), np.maximum(error, SMALLEST), degrees)

    @classmethod
    def from_intervals(cls, values: Sequence[Interval], processes: Sequence[int | None]) -> Estimates:
        """Return estimates from one interval per element and its number of processes (None where not known)."""
        columns = np.array(values, float).reshape(-1, 3).T
        return cls.from_arrays(Interval(*columns), np.array([count or 0 for count in processes]))

    def __sub__(self, other: Estimates) -> Estimates:
        """Return the difference of independent estimates, with Welch's degrees of freedom (Biometrika 34, 1947)."""
        mine, others = self.error**2, other.error**2
        degrees = _degrees((mine, self.degrees), (others, other.degrees))
        return Estimates(self.mean - other.mean, np.sqrt(mine + others), degrees)

    @property
    def middle(self) -> Estimates:
        """Return the mean of these independent estimates, with Satterthwaite's degrees of freedom."""
        variance = self.error**2 / len(self.mean) ** 2
        degrees = _degrees(*zip(variance, self.degrees, strict=True))
        return Estimates(self.mean.mean(), np.sqrt(variance.sum()), degrees)

    @property
    def random_effects(self) -> Estimates:
        """Return the mean over two or more runs of a cell whose true value differs from run to run.

        The between-run variance is Hedges and Olkin's (Statistical Methods for Meta-Analysis, 1985): that of the runs'
        means less the part that their errors explain. Runs count alike, since errors of three processes make poor
        weights: Paule and Mandel's cover 0.88 where these cover 0.96 (studies/coverage.py).
        """
        within, count = self.middle, len(self.mean)
        between = max(0.0, self.mean.var(ddof=1) - np.mean(self.error**2)) / count
        degrees = _degrees((within.error**2, within.degrees), (between, count - 1.0))
        return Estimates(within.mean, np.sqrt(within.error**2 + between), degrees)

    @property
    def chance(self) -> np.ndarray:
        """Return the two-sided p-value of the mean."""
        from scipy.special import stdtr  # type: ignore[import-untyped]

        return 2 * stdtr(self.degrees, -np.abs(self.mean) / self.error)

    @property
    def interval(self) -> Interval:
        """Return the ratio (the mean is its logarithm) with its 95 % interval."""
        half = quantile(self.degrees) * self.error
        return Interval(np.exp(self.mean), np.exp(self.mean - half), np.exp(self.mean + half))


def independent_ratio(
    numerator: Interval, denominator: Interval, processes: tuple[int | None, int | None] = (None, None)
) -> Interval:
    """Return the ratio of two positive figures that were not measured in turn, with its 95 % interval.

    The one rule for rankings, comparisons and claims: Welch's interval on logarithms, from both sides' intervals and
    the numbers of processes behind them. An interval over several runs includes their variation.
    """
    return one_interval(
        Estimates.from_intervals([numerator], processes[:1]) - Estimates.from_intervals([denominator], processes[1:])
    )


def one_interval(estimates: Estimates) -> Interval:
    """Return the ratio of a single estimate with its interval, in floats."""
    return Interval(*(float(np.squeeze(end)) for end in estimates.interval))


def degrees_of(processes: np.ndarray | int) -> np.ndarray:
    """Return the degrees of freedom of an interval over so many processes; infinite for fewer than three."""
    return np.where(np.greater_equal(processes, ENOUGH_PROCESSES), np.subtract(processes, 1.0), np.inf)


def _degrees(*parts: tuple[Any, Any]) -> np.ndarray:
    """Return Satterthwaite's degrees of freedom of a sum of variances, each with its own (Biometrics 2, 1946)."""
    whole = sum(variance for variance, _ in parts)
    rest = sum(variance**2 / degrees for variance, degrees in parts)
    return whole**2 / np.maximum(rest, SMALLEST**4)


def quantile(degrees: np.ndarray) -> np.ndarray:
    """Return the quantile t of Student's distribution: 95 % of it lie between -t and t."""
    from scipy.special import stdtrit

    return stdtrit(degrees, (1 + CONFIDENCE) / 2)
