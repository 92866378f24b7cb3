"""Break down a run's time: seconds by phase, from the messages of workers as they arrive."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable

from measurement.text import percent

# The suite neither causes these phases nor can shorten them.
NOT_COUNTED = ("first call", "compiler start")


class TimeBreakdown:
    """Adds the time since the last change of phase to the phase that ends."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter):
        self._clock, self._since, self._phase = clock, clock(), "reference data"
        self.seconds: dict[str, float] = defaultdict(float)

    def enter(self, phase: str) -> None:
        """Add the time so far to the current phase, and begin another."""
        now = self._clock()
        self.seconds[self._phase] += now - self._since
        self._since, self._phase = now, phase

    def absorb(self, others: Iterable[TimeBreakdown]) -> None:
        """Add the phases of slots that ran side by side, without the time spent waiting for them."""
        for other in others:
            other.enter("records")
            for phase, seconds in other.seconds.items():
                self.seconds[phase] += seconds
        self._since = self._clock()

    def sentence(self) -> str:
        """Return a sentence on sampling's share of the time, without environments and compilation, and on the rest."""
        self.enter(self._phase)
        counted = {name: seconds for name, seconds in self.seconds.items() if name not in NOT_COUNTED}
        total, sampling = sum(counted.values()), counted.pop("sampling", 0.0)
        others = sorted(((seconds, name) for name, seconds in counted.items() if seconds >= 1), reverse=True)
        rest = ", ".join(f"{name} {seconds:.0f} s" for seconds, name in others)
        compiling = f"not counting {sum(self.seconds.get(name, 0.0) for name in NOT_COUNTED):.0f} s of compilation"
        share = percent(sampling / total) if total else "nothing"
        return f"Sampling took {sampling:.0f} of {total:.0f} s ({share}), {compiling}; the rest: {rest or 'none'}."
