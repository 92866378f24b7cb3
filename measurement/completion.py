"""Does `synchronize` wait for the work? Timing without waiting is the commonest error in published benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

# More than this share of a call still to be done after `synchronize` means that it does not wait.
OUTSTANDING_SHARE = 0.5
LONG_CALL_S = 0.1  # asked once where a call is this long, else three times


def outstanding_share(
    step: Callable[[], Any],
    synchronize: Callable[[Any], None],
    fetch: Callable[[Any], Any],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> float:
    """The share of a call's time (call, `synchronize` and `fetch`) that is left to do when `synchronize` has returned.

    `fetch` brings the output to the host, which no framework can do before it is there. It is timed right after
    `synchronize`, and again on another call after a sleep as long as a whole call, when nothing can be outstanding.
    What the first takes longer was outstanding.
    """
    shares = []
    while len(shares) < 3:
        start = clock()
        output = step()
        synchronize(output)
        submitted = clock()
        fetch(output)
        whole, at_once = clock() - start, clock() - submitted
        output = step()
        synchronize(output)
        sleep(whole)
        start = clock()
        fetch(output)
        shares.append((at_once - (clock() - start)) / whole)
        if whole > LONG_CALL_S:
            break
    return median(shares)
