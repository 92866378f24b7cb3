"""Is a change more than chance? Tests on logarithms of times, and what becomes of them where many are made at once.

Everything is an array, an element a cell: a comparison may have a hundred thousand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit  # type: ignore[import-untyped]

from measurement.statistics import Interval
from records.intervals import CONFIDENCE

# Of any false alarm in a comparison: whoever compares twenty times is to see none, while an interval may miss in one.
CHANCE = 0.01
SMALLEST = 1e-12  # standard error, so that nothing is divided by zero


@dataclass(frozen=True)
class Estimates:
    """Means over launches on a logarithmic scale, with their standard errors and degrees of freedom."""

    mean: np.ndarray
    error: np.ndarray
    degrees: np.ndarray

    @classmethod
    def of_intervals(cls, values: Interval, launches: np.ndarray) -> Estimates:
        """What records say: 95 % intervals of Student's t over that many launches, the estimate in ln's middle.

        An interval that was widened to what the scatter within launches allows gives a larger error than the launches'.
        With one or two launches the degrees are those of three, for want of any; no verdict is to rest on it.
        """
        degrees = np.maximum(launches, 3) - 1.0
        error = np.log(values.high / values.low) / 2 / quantile(degrees)
        return cls(np.log(values.value), np.maximum(error, SMALLEST), degrees)

    def __sub__(self, other: Estimates) -> Estimates:
        """The difference of independent estimates, with the degrees of freedom of Welch (Biometrika 34, 1947)."""
        mine, others = self.error**2, other.error**2
        degrees = (mine + others) ** 2 / (mine**2 / self.degrees + others**2 / other.degrees)
        return Estimates(self.mean - other.mean, np.sqrt(mine + others), degrees)

    @property
    def chance(self) -> np.ndarray:
        """How likely so large a mean, either way, is by chance (two-sided)."""
        return 2 * stdtr(self.degrees, -np.abs(self.mean) / self.error)

    @property
    def interval(self) -> Interval:
        """The ratio that the mean is the logarithm of, with its 95 % interval."""
        half = quantile(self.degrees) * self.error
        return Interval(np.exp(self.mean), np.exp(self.mean - half), np.exp(self.mean + half))


def quantile(degrees: np.ndarray) -> np.ndarray:
    """Student's t between whose negative and itself lie 95 % of the distribution."""
    return stdtrit(degrees, (1 + CONFIDENCE) / 2)


def holm(chances: np.ndarray) -> np.ndarray:
    """Chances of so many tests at once: where one is below a bound, any false alarm among all is no likelier than that.

    The step-down procedure of Holm (Scandinavian Journal of Statistics 6, 1979, 65-70), as adjusted values. It supposes
    nothing of how the tests hang together, which cells of one run do.
    """
    order = np.argsort(chances, kind="stable")
    raised = np.maximum.accumulate(chances[order] * np.arange(len(chances), 0, -1))
    adjusted = np.empty(len(chances))
    adjusted[order] = np.minimum(raised, 1.0)
    return adjusted
