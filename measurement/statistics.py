"""Medians, intervals and ratios: pure functions on lists of numbers.

docs/methodology.md has the formulas and the reasons for them. Rounds on a shared machine are serially correlated. So
intervals that assume independence (order statistics, the plain bootstrap) cover the true value too rarely. Workers
import this module and have no SciPy: the runner computes intervals over processes (records/intervals.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from statistics import fmean, median
from typing import NamedTuple

# Two-sided 95 % quantiles of Student's t for 2, 3, ... 7 degrees of freedom (NIST/SEMATECH e-Handbook of Statistical
# Methods, section 1.3.6.7.2): workers have no SciPy, and no more batches.
_T_975 = (4.303, 3.182, 2.776, 2.571, 2.447, 2.365)
FEWEST_VALUES = 6  # for an interval
FEWEST_BATCHES, MOST_BATCHES, BATCH_LENGTH = 3, 8, 5
# Scope of an interval: one process (or two, too few to reveal differences), or any.
WITHIN_PROCESS, ACROSS_PROCESSES = "within this process", "across processes"
FASTER, SLOWER = "faster", "slower"
INCONCLUSIVE = "inconclusive"  # undecided by the interval
ENOUGH_PROCESSES = 3  # minimum for an interval across processes


class Interval(NamedTuple):
    """An estimate with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    @property
    def relative_half_width(self) -> float:
        """Half the interval's width over the estimate."""
        return (self.high - self.low) / 2 / abs(self.value) if self.value else math.inf

    def map(self, function) -> Interval:
        """Return the interval of an increasing function of the estimate."""
        return Interval(function(self.value), function(self.low), function(self.high))


def interval_of(value: float | None, low: float | None, high: float | None) -> Interval | None:
    """Return an interval of three figures; None if one is missing."""
    return None if value is None or low is None or high is None else Interval(value, low, high)


def half_width(interval: Interval | None) -> float | None:
    """Return the relative half-width of an interval; None without one."""
    return None if interval is None else interval.relative_half_width


def sign(ratio: Interval | None) -> str:
    """Return `faster` or `slower` for the new, by an interval of old over new time; else `inconclusive`."""
    if ratio and ratio.low > 1:
        return FASTER
    return SLOWER if ratio and ratio.high < 1 else INCONCLUSIVE


def stdev(values: Sequence[float]) -> float:
    """Return the sample standard deviation of two or more values, in floats.

    The standard library's uses fractions, which takes several times as long.
    """
    mean = fmean(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


def percentile(values: Sequence[float], share: float) -> float | None:
    """Return the percentile by nearest rank; None if that rank is the largest value."""
    rank = math.ceil(share * len(values))
    return sorted(values)[rank - 1] if 0 < rank < len(values) else None


def scope(processes: int) -> str:
    """Return the scope of an interval over so many processes."""
    return ACROSS_PROCESSES if processes >= ENOUGH_PROCESSES else WITHIN_PROCESS


def batch_medians(values: Sequence[float]) -> list[float]:
    """Return the medians of consecutive batches of about five values, in order; three to eight batches.

    Empty for fewer than six values.
    """
    n = len(values)
    if n < FEWEST_VALUES:
        return []
    batches = min(max(n // BATCH_LENGTH, FEWEST_BATCHES), MOST_BATCHES)
    cuts = [round(index * n / batches) for index in range(batches + 1)]
    return [median(values[start:end]) for start, end in itertools.pairwise(cuts)]


def widening(batch_length: float) -> float:
    """Return the factor that widens Student's interval over batches, since short batches are not independent.

    1 + 0.8 / length was chosen by simulation on 10 to 70 autoregressive values of order one with a coefficient of 0 to
    0.6. There the interval covers the true value in 93 to 97 % (tests/measurement/test_statistics.py).
    """
    return 1 + 0.8 / batch_length


def batch_interval(values: Sequence[float]) -> Interval | None:
    """Return the median of a series, with an interval that allows for serial correlation.

    Batch means (Law and Kelton, Simulation Modeling and Analysis, ch. 9.5.3) with medians for means: Student's
    half-width over the batches' medians, widened. None for fewer than six values.
    """
    medians = batch_medians(values)
    if not medians:
        return None
    count = len(medians)
    half = widening(len(values) / count) * _T_975[count - 3] * stdev(medians) / math.sqrt(count)
    centre = median(values)
    return Interval(centre, centre - half, centre + half)


def log_ratios(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """Return ln(a / b) of values measured in the same round."""
    return [math.log(a / b) for a, b in zip(numerators, denominators, strict=True)]


def steady(earlier: Sequence[float], later: Sequence[float], tolerance: float) -> bool:
    """Return whether the medians of two windows of samples differ within a relative tolerance, or within scatter.

    Scatter is the difference of two medians that occurs by chance in 1 of 20 cases. The standard deviation is 1.48
    times the median absolute deviation from each window's median. A median's error is 1.25 times the mean's.
    """
    centres = median(earlier), median(later)
    deviations = [abs(x - centre) for window, centre in zip((earlier, later), centres, strict=True) for x in window]
    error = 1.25 * 1.48 * median(deviations) * math.sqrt(1 / len(earlier) + 1 / len(later))
    return abs(centres[0] - centres[1]) <= max(tolerance * min(centres), 1.96 * error)
