"""Controls of a mode for self-checks: the same step made slower, and an independent timer."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from typing import Any


def delayed(step: Callable[[], Any], synchronize: Callable[[Any], None], share: float) -> Callable[[], Any]:
    """Return `step` with a known slow-down: it spins afterwards for `share` of the call's time."""

    def call() -> Any:
        start = time.perf_counter()
        output = step()
        synchronize(output)
        end = time.perf_counter()
        while time.perf_counter() < end + share * (end - start):
            pass
        return output

    return call


def independent_timer(call: Callable[[], Any]) -> Callable[[int], float]:
    """Return Python's own `timeit` on a call: a function from a number of calls to seconds per call."""
    return lambda calls: timeit.timeit(call, number=calls) / calls
