"""Medians, intervals and ratios: pure functions on lists of numbers.

The formulas and why they were chosen are in docs/methodology.md. Plain bootstrap intervals are not used: on the
serially correlated samples of a shared machine they cover the truth too rarely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import NamedTuple

# Two-sided 95 % quantiles of Student's t, for 1, 2, ... degrees of freedom (any printed table, e.g. NIST/SEMATECH
# e-Handbook of Statistical Methods, section 1.3.6.7.2, column 0.975).
_T_975 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
_Z_975 = 1.960


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
        """The interval of an increasing function of the estimate."""
        return Interval(function(self.value), function(self.low), function(self.high))


@dataclass(frozen=True)
class Summary:
    """Absolute latency over samples, in the unit of the samples."""

    samples: int
    median: float
    mean: float
    std: float | None  # None for a single sample
    p95: float
    minimum: float


def summarise(samples: Sequence[float]) -> Summary:
    """Median, mean, sample standard deviation, 95th percentile (nearest rank) and minimum of at least one sample."""
    ordered = sorted(samples)
    return Summary(
        samples=len(ordered),
        median=median(ordered),
        mean=fmean(ordered),
        std=stdev(ordered) if len(ordered) > 1 else None,
        p95=ordered[math.ceil(0.95 * len(ordered)) - 1],
        minimum=ordered[0],
    )


def t_quantile(degrees_of_freedom: int) -> float:
    """The 0.975 quantile of Student's t; beyond 30 degrees of freedom the normal one, at most 4 % too small."""
    return _T_975[degrees_of_freedom - 1] if degrees_of_freedom <= len(_T_975) else _Z_975


def median_interval(values: Sequence[float]) -> Interval | None:
    """The median with its order-statistic interval, which assumes no distribution (David and Nagaraja 2003, ch. 7.1).

    The interval is (x_(k), x_(n+1-k)) with the largest k for which the binomial probability that fewer than k of n
    values fall below the median is at most 2.5 %. None for fewer than six values, for which no such k exists.
    """
    n = len(values)
    # In whole numbers: 0.5**n is 0 for some thousand samples. P[fewer than k] = below / 2**n.
    below, term, k = 0, 1, 0
    while (below + term) * 40 <= 2**n:
        below += term
        term = term * (n - k) // (k + 1)  # the next binomial coefficient
        k += 1
    if k == 0:
        return None
    ordered = sorted(values)
    return Interval(median(ordered), ordered[k - 1], ordered[n - k])


def student_interval(values: Sequence[float]) -> Interval | None:
    """The mean with its Student t interval; None for fewer than three values."""
    if len(values) < 3:
        return None
    centre = fmean(values)
    half = t_quantile(len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return Interval(centre, centre - half, centre + half)


def ratio(launches: Sequence[Sequence[float]]) -> Interval | None:
    """The ratio behind launches of pair log-ratios l_ij = ln(t_eager / t_graph), with its 95 % interval.

    With three or more launches: exp of the mean of the launches' medians, Student's interval over the launches. With
    fewer, the launches' pairs are taken together and the order-statistic interval of their median is used, which
    knows nothing of the variation between launches. None where neither can be had.
    """
    launches = [launch for launch in launches if launch]
    if len(launches) >= 3:
        interval = student_interval([median(launch) for launch in launches])
    else:
        interval = median_interval([pair for launch in launches for pair in launch])
    return interval.map(math.exp) if interval else None


def log_ratios(numerators: Sequence[float], denominators: Sequence[float]) -> list[float]:
    """ln(a / b) of values taken in the same round."""
    return [math.log(a / b) for a, b in zip(numerators, denominators, strict=True)]


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """First and third quartile by linear interpolation between closest ranks (Hyndman and Fan 1996, type 7)."""
    ordered = sorted(values)

    def at(share: float) -> float:
        position = share * (len(ordered) - 1)
        below = math.floor(position)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (position - below) * (ordered[above] - ordered[below])

    return at(0.25), at(0.75)


def steady(
    earlier: Sequence[float], later: Sequence[float], median_tolerance: float, quartile_tolerance: float
) -> bool:
    """Whether two windows of samples agree: medians and quartiles each within their relative tolerance."""

    def close(a: float, b: float, tolerance: float) -> bool:
        return abs(a - b) <= tolerance * min(a, b)

    return close(median(earlier), median(later), median_tolerance) and all(
        close(a, b, quartile_tolerance) for a, b in zip(quartiles(earlier), quartiles(later), strict=True)
    )


def independent_ratio(numerator: Interval, denominator: Interval, of=math) -> Interval:
    """The ratio of two positive estimates from independent samples, with a 95 % interval made from theirs.

    `of` is the module of elementary functions: `numpy` where the intervals hold arrays, an estimate an element.

    On logarithms, the recovered-variance method of Zou and Donner (Statistics in Medicine 27, 2008, 1693-1702): each
    side's distance is the root of the summed squares of the estimates' own distances. It supposes nothing of their
    distributions beyond what their intervals say.
    """
    centre = of.log(numerator.value / denominator.value)
    below = of.hypot(of.log(numerator.value / numerator.low), of.log(denominator.high / denominator.value))
    above = of.hypot(of.log(numerator.high / numerator.value), of.log(denominator.value / denominator.low))
    return Interval(of.exp(centre), of.exp(centre - below), of.exp(centre + above))
