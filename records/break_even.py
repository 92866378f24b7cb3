"""When compiling pays: the calls after which the savings exceed the extra cost of the first call."""

from __future__ import annotations


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
