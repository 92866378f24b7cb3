"""When compiling pays: the calls after which the savings exceed the extra cost of the first call."""

from __future__ import annotations

from typing import NamedTuple

from measurement.statistics import Interval


class Calls(NamedTuple):
    """Calls after which compiling has paid, with the ends of their interval; None stands for never."""

    value: float | None
    low: float | None
    high: float | None


def from_savings(extra_s: float, saved_s: Interval) -> Calls:
    """Return the calls that save `extra_s`, from the seconds that a call saves; the interval includes the estimate."""
    return Calls(after(extra_s, saved_s.value), after(extra_s, saved_s.high), after(extra_s, saved_s.low))


def between(low: float, high: float) -> float:
    """Return the estimate of `from_savings` from the ends of its interval, both above 0: their harmonic mean.

    The interval of the savings is symmetric about their estimate.
    """
    return 2 / (1 / low + 1 / high)


def saving_s(eager_s: float, speedup: float) -> float:
    """Return the seconds that a call saves, from eager mode's time and the paired speedup."""
    return eager_s * (1 - 1 / speedup)


def calls(extra_s: float, eager_s: float, speedup: float | None) -> float | None:
    """Return the calls that save `extra_s`; None if never, without a speedup, or if `extra_s` is not positive."""
    return after(extra_s, saving_s(eager_s, speedup) if speedup else 0.0)


def after(extra_s: float, saved_s: float) -> float | None:
    """Return the calls that save `extra_s` if each saves `saved_s`; None if a call saves nothing.

    None also if `extra_s` is not positive. Eager mode runs first in the same process, and its first call includes
    libraries that load lazily: such a difference does not show that compiling costs nothing.
    """
    return extra_s / saved_s if extra_s > 0 and saved_s > 0 else None
