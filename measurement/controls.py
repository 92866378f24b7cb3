"""What a self-check sets beside a mode: the same step made slower, and an independent timer on it."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from typing import Any


def delayed(step: Callable[[], Any], synchronize: Callable[[Any], None], share: float) -> Callable[[], Any]:
    """`step`, spinning afterwards for `share` of the time that the call took: a known slow-down for self-checks."""

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
    """Python's own `timeit` on a call: seconds per call over so many."""
    return lambda calls: timeit.timeit(call, number=calls) / calls
