"""When compiling pays: the calls after which the savings exceed the extra cost of the first call."""

from __future__ import annotations

import math
from typing import NamedTuple

from measurement.statistics import Interval

WITH_FIRST_CALLS = 13  # the first version of records whose interval may include the scatter of first calls


class Calls(NamedTuple):
    """Calls after which compiling has paid, with the ends of their interval; None stands for never."""

    value: float | None
    low: float | None
    high: float | None


def from_savings(extra_s: Interval, saved_s: Interval) -> Calls:
    """Return the calls that save `extra_s`, from the seconds that a call saves.

    The interval is Fieller's (Journal of the Royal Statistical Society B 16, 1954): the calls n where 0 is within the
    interval of `extra_s` - n `saved_s`. Both are symmetric, and their errors independent.
    """
    (extra, extra_low, extra_high), (saved, saved_low, saved_high) = extra_s, saved_s
    if extra <= 0 or saved_high <= 0:
        return Calls(None, None, None)
    of_extra, of_saved = extra_high - extra, saved_high - saved
    variance = (extra * of_saved) ** 2 + (saved * of_extra) ** 2 - (of_extra * of_saved) ** 2
    root = extra * saved + math.sqrt(max(0.0, variance))
    low = extra_low * extra_high / root if extra_low > 0 else 0.0
    high = root / (saved_low * saved_high) if saved_low > 0 else None
    return Calls(after(extra, saved), low, high)


def between(low: float, high: float) -> float:
    """Return the estimate from the ends of the interval of an earlier record: their harmonic mean.

    The first call counted as exact, and the interval of the savings is symmetric about their estimate.
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
