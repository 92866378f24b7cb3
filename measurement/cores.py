"""CPUs at full speed for the host threads of a process that uses a GPU.

Other tenants slow single CPUs, for a second or so each: of the 16 of a rented host about half are slow at any time. So
before a turn that would start on a slow CPU, all threads of this process move to CPUs that run at full speed.
"""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import Path

from measurement.host import SLOW, loop_seconds

FEWEST = 4  # CPUs for one process: the thread that submits, one of autograd, and some of the framework
STALE_SECONDS = 1.0  # other CPUs may have changed their speed after so long, though not that of the calling thread


def own_threads() -> list[int]:
    """Return the ids of this process's threads."""
    return [int(entry.name) for entry in Path("/proc/self/task").iterdir()]


class Cores:
    """The CPUs of this process. The arguments other than the clock replace the system in tests."""

    def __init__(
        self,
        clock: Callable[[], float],
        cpus: Sequence[int] = (),
        assign: Callable[[int, Collection[int]], None] = os.sched_setaffinity,
        threads: Callable[[], Iterable[int]] = own_threads,
    ):
        self._clock, self._assign, self._threads = clock, assign, threads
        self._cpus = list(cpus) or sorted(os.sched_getaffinity(0))
        self._full_s, self._moved_at = math.inf, -math.inf

    def settle(self) -> float:
        """Move if the calling thread's CPU is slow; return the control loop's seconds on its CPU afterwards."""
        seconds = loop_seconds(self._clock)
        fresh = self._clock() - self._moved_at < STALE_SECONDS
        if len(self._cpus) < 2 or (fresh and seconds <= SLOW * self._full_s):
            return seconds
        try:
            self._move()
        except OSError:  # the system took CPUs away from this process
            self._cpus = []
        self._moved_at = self._clock()
        return loop_seconds(self._clock)

    def release_cpus(self) -> None:
        """Give all threads all CPUs again."""
        self._place(self._cpus)

    def _move(self) -> None:
        """Place the threads on the fastest CPUs, the calling thread on the fastest; the first time, try all CPUs."""
        seconds: dict[int, float] = {}
        for cpu in self._cpus:
            self._assign(0, {cpu})
            seconds[cpu] = loop_seconds(self._clock)
            if sum(one <= SLOW * self._full_s for one in seconds.values()) == FEWEST and self._full_s < math.inf:
                break
        self._full_s = min(self._full_s, *seconds.values())
        fastest = sorted(seconds, key=seconds.__getitem__)[:FEWEST]
        self._assign(0, fastest[:1])
        self._place(fastest)
        self._cpus = [cpu for cpu in self._cpus if cpu not in seconds] + [*seconds]  # the next search starts elsewhere

    def _place(self, cpus: Collection[int]) -> None:
        """Allow these CPUs to all threads."""
        for thread in self._threads() if cpus else ():
            with contextlib.suppress(ProcessLookupError):  # it ended
                self._assign(thread, cpus)
