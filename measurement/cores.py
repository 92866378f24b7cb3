"""CPUs at full speed for the threads that submit work to a GPU.

On rented hosts single CPUs run at half speed for a second or so each: of 16 about half at any time. So where the
control loop is slow before a turn, the threads that work move to CPUs where it is fast.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence

from measurement.host import SLOW, full_seconds, loop_seconds
from measurement.machine import cpu_seconds, first_sibling

FEWEST = 4  # CPUs for the threads that work; more if more of them do
BUSY_SHARE = 0.05  # of the time since the last move; a thread that used the CPU for longer works
MOST_TRIED = 16  # CPUs in one search, of which each takes 1 ms
REMEMBERED, KNOWN = 1000, 10  # loops behind the full speed: at most, and at least


def own_threads() -> dict[int, float]:
    """Return the CPU seconds that each thread of this process has used, by its id."""
    return {int(thread): cpu_seconds(f"self/task/{thread}") for thread in os.listdir("/proc/self/task")}


class Cores:
    """The CPUs of this process. The arguments after `cpus` replace the system in tests."""

    def __init__(
        self,
        clock: Callable[[], float],
        cpus: Sequence[int],
        assign: Callable[[int, Collection[int]], None] = os.sched_setaffinity,
        allowed: Callable[[int], Collection[int]] = os.sched_getaffinity,
        threads: Callable[[], Mapping[int, float]] = own_threads,
    ):
        self._clock, self._assign, self._allowed, self._threads = clock, assign, allowed, threads
        self._cpus = sorted(cpus, key=lambda cpu: first_sibling(cpu) != cpu)  # one per core first
        self._whole = set(allowed(threading.get_native_id()))  # what a thread may use when nothing is measured
        self._loops: deque[float] = deque(maxlen=REMEMBERED)
        self._used, self._looked_at = threads(), clock()
        self._moved: set[int] = set()
        self._known: set[int] = set()  # threads at the first move

    @property
    def movable(self) -> bool:
        """Return whether there is a choice of CPUs."""
        return len(self._cpus) > 1

    def settle(self) -> float:
        """Move if the calling thread's CPU is slow; return the control loop's seconds on its CPU afterwards."""
        seconds = self._loop()
        if not self.movable or (len(self._loops) >= KNOWN and seconds <= self._limit()):
            return seconds
        try:
            self._move()
        except OSError:  # the system took CPUs away from this process
            self._cpus = []
            self.release_cpus()
        return self._loop()

    def release_cpus(self) -> None:
        """Give the threads that moved, and those that started since, all CPUs again."""
        for thread in self._threads() if self._moved else ():
            if thread in self._moved or thread not in self._known:
                with contextlib.suppress(OSError):
                    self._assign(thread, self._whole)
        self._moved.clear()

    def _loop(self) -> float:
        self._loops.append(loop_seconds(self._clock))
        return self._loops[-1]

    def _limit(self) -> float:
        """Return the longest time of a loop on a fast CPU, in seconds."""
        return SLOW * (full_seconds(self._loops) or 0.0)

    def _move(self) -> None:
        """Place the threads that work on fast CPUs, the calling thread on the fastest."""
        own = threading.get_native_id()
        working = self._working() | {own}
        if len(working) >= len(self._cpus):
            return  # they need all
        count = min(max(FEWEST, len(working)), len(self._cpus) - 1)
        if not self._moved:
            self._known = set(self._threads())
        self._moved.add(own)
        tried: dict[int, float] = {}
        for cpu in self._cpus[:MOST_TRIED]:
            self._assign(own, {cpu})
            tried[cpu] = self._loop()
            limit = self._limit()
            if len(self._loops) >= KNOWN and sum(seconds <= limit for seconds in tried.values()) == count:
                break
        self._cpus = [cpu for cpu in self._cpus if cpu not in tried] + [*tried]  # the next search starts elsewhere
        fastest = sorted(tried, key=tried.__getitem__)
        limit = self._limit()
        fast = [cpu for cpu in fastest if tried[cpu] <= limit]
        chosen = fast[:count] if len(fast) >= len(working) else fastest[: max(2, len(working))]
        self._assign(own, chosen[:1])
        for thread in working:
            with contextlib.suppress(ProcessLookupError):  # it ended
                if thread in self._moved or set(self._allowed(thread)) == self._whole:  # no library bound it
                    self._moved.add(thread)
                    self._assign(thread, chosen)

    def _working(self) -> set[int]:
        """Return the threads that worked since the last look."""
        used, now = self._threads(), self._clock()
        elapsed, before = now - self._looked_at, self._used
        self._used, self._looked_at = used, now
        return {thread for thread, seconds in used.items() if seconds - before.get(thread, 0.0) > BUSY_SHARE * elapsed}
