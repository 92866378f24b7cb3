"""Does `synchronize` wait for the work? Timing without waiting is the commonest error in published benchmarks."""

from __future__ import annotations

from collections.abc import Callable
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
    """Return the share of a call's time (call, `synchronize`, `fetch`) that is left once `synchronize` has returned.

    `fetch` brings the output to the host, which no framework can do before it is there. It is timed right after
    `synchronize`, and again on another call after a sleep as long as a whole call, when nothing can be outstanding. The
    extra time of the first fetch is work that was still outstanding. The quickest of each counts: a fetch may be slow
    for other reasons, such as fresh pages for its copy.
    """

    def fetch_after(pause: float) -> tuple[float, float]:
        start = clock()
        output = step()
        synchronize(output)
        sleep(pause)
        fetched = clock()
        fetch(output)
        return clock() - fetched, clock() - start - pause

    fetch_after(0.0)  # whatever a first fetch has to set up
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
