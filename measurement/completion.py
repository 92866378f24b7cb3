"""Does `synchronize` wait for the work? Timing without waiting is the commonest error in published benchmarks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# If more than this share of a call remains after `synchronize`, it does not wait.
OUTSTANDING_SHARE = 0.5
LONG_CALL_S = 0.1  # tested once if a call is longer, else three times


def outstanding_share(
    step: Callable[[], Any],
    synchronize: Callable[[Any], None],
    fetch: Callable[[Any], Any],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> float:
    """Return the share of a call's time (call, `synchronize`, `fetch`) that remains after `synchronize`.

    `fetch` copies the output to the host, so it must wait for the work. It is timed right after `synchronize`, and on
    another call after a pause as long as a whole call, when no work can remain. The difference is the remaining work.
    The fastest fetch of each kind counts: other causes, such as fresh pages for the copy, also slow a fetch.
    """

    def fetch_after(pause: float) -> tuple[float, float]:
        start = clock()
        output = step()
        synchronize(output)
        sleep(pause)
        fetched = clock()
        fetch(output)
        return clock() - fetched, clock() - start - pause

    fetch_after(0.0)  # set-up of the first fetch
    at_once: list[float] = []
    later: list[float] = []
    whole: list[float] = []
    while len(whole) < 3:
        quickly, lasted = fetch_after(0.0)
        at_once.append(quickly)
        whole.append(lasted)
        later.append(fetch_after(lasted)[0])
        if lasted > LONG_CALL_S:
            break
    return (min(at_once) - min(later)) / max(min(whole), 1e-9)
