"""A clock that stands still but for the work done, and a device that works only when it is synchronized."""

from __future__ import annotations

import weakref
from collections.abc import Callable

from measurement.profiles import Profile
from measurement.sampling import OUTPUTS_KEPT, Clocks, Variant

TICK = 1 / 1024  # binary, so that sums of it are exact
PROFILE = Profile(
    "test", 1, 1, seconds_per_cell=1.0, maximum_seconds_per_cell=2.2, minimum_rounds=4, target_half_width=0.01,
    stop_early=False, warmup_seconds=2.0, sample_seconds=16 * TICK, queued_sample_seconds=40 * TICK,
    long_call_seconds=1.0, steady_span=0.0,
)  # fmt: skip


class Output:
    """What a step returns; can be watched for its end."""


class Machine:
    """One clock and one device. Reading the clock over unfinished work is an AssertionError."""

    def __init__(self):
        self.now, self.cpu, self.queued = 0.0, 0.0, []
        self.log: list[tuple] = []  # (event, name or time)
        self.alive: dict[str, weakref.WeakSet] = {}  # the outputs that somebody holds, by name
        self.clocks = Clocks(self.read, lambda: self.cpu)

    def read(self) -> float:
        assert not self.queued, "a clock was read while work was outstanding"
        self.log.append(("clock", self.now))
        return self.now

    def variant(
        self, name: str, seconds: float | Callable[[int], float], cores: float = 1.0, queue: float = 0.0, **fields
    ) -> Variant:
        """A mode whose n-th call (from 1) takes `seconds`, or `seconds(n)`, once it is waited for.

        Waiting takes `queue` seconds more, however many calls are waited for.
        """
        calls = 0
        alive = weakref.WeakSet()

        def step() -> Output:
            nonlocal calls
            calls += 1
            self.log.append(("call", name))
            self.queued.append((name, seconds(calls) if callable(seconds) else seconds))
            output = Output()
            alive.add(output)
            return output

        def synchronize(output) -> None:
            assert output in alive
            expected = min(len(self.queued), OUTPUTS_KEPT)
            assert len(alive) >= expected, "an output died before it was synchronized"
            self.log.append(("synchronize", name))
            for _, duration in self.queued:
                self.now += duration
                self.cpu += duration * cores
            self.now += queue
            self.queued.clear()

        self.alive[name] = alive
        return Variant(name, step, synchronize, **fields)

    def called(self) -> list[str]:
        return [what for event, what in self.log if event == "call"]
