"""A profile by a framework's profiler, reduced to the time of every kernel. No clock is read here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from frameworks.adapter import Step
from frameworks.traces import attribution
from frameworks.traces.events import Event

LATEST = 1e6  # seconds; a float resolves 0.1 ns there, but only 240 ns at the seconds since 1970


@dataclass(frozen=True)
class Profile:
    """Seconds and counts per call, by kernel and by its operator (`attribution.operators`).

    `busy_s` is the time in which at least one kernel ran. `wall_s` is the time from the first call's start to the last
    one's end. Both are measured under the profiler. `trace` is the file the framework wrote for a trace viewer.
    """

    kernels: tuple[
        tuple[str, float, float, str], ...
    ]  # name, seconds and occurrences per call, operator; longest first
    wall_s: float
    busy_s: float
    trace: str | None = None


class Profiler(Protocol):
    """A framework's profiler: `frameworks/<name>/inspect/profiler.py` has a class of this name.

    It is made once per process with a folder, before anything is compiled. The environment of `Framework.dumps` makes
    compilers write their programs there. With `before_timing` a mode is profiled after a few calls, before it is timed.
    Otherwise it is profiled afterwards, since some profilers have lasting effects.
    """

    before_timing: bool = False

    def profile(self, step: Step, synchronize: Callable[[Any], None], calls: int, folder: Path) -> Profile:
        """Profile `calls` calls of a warm step; files for a trace viewer go into `folder`."""

    def attention(self, step: Step, eager: bool) -> list[dict]:
        """Return the calls of the framework's attention operator in a warm step, each with the framework's own choice.

        Keys: `call` and `mask` (its arguments as text), `count` (per call of the step), `chosen` (the kernel),
        `refused` (unused fused kernels with the framework's reasons). Empty if the framework does not report it.
        """
        return []


def reduce(events: Iterable[Event], wall_s: float, calls: int, trace: Path | None = None) -> Profile:
    """Return the profile of `calls` calls that took `wall_s` seconds together.

    Raises ValueError where events' zero is so long ago that seconds as floats do not resolve nanoseconds.
    """
    events = [event for event in events if event.duration_s > 0]
    if any(event.end_s > LATEST for event in events):
        raise ValueError(f"an event {LATEST:g} s after the trace's zero: let events count from the first call's start")
    seconds: dict[tuple[str, str], float] = defaultdict(float)
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for (event, self_s), operator in zip(own_times(events), attribution.operators(events), strict=True):
        seconds[event.name, operator] += self_s
        counts[event.name, operator] += 1
    keys = sorted(seconds, key=lambda key: -seconds[key])
    return Profile(
        kernels=tuple((key[0], seconds[key] / calls, counts[key] / calls, key[1]) for key in keys),
        wall_s=wall_s / calls,
        busy_s=union_s(events) / calls,
        trace=str(trace) if trace else None,
    )


def own_times(events: Sequence[Event]) -> list[tuple[Event, float]]:
    """Return each event with its duration less that of the events inside it on the same lane."""
    self_times = [event.duration_s for event in events]
    for index, around in enumerate(attribution.enclosing(events)):
        if around:
            self_times[around[-1]] -= events[index].duration_s
    return [(event, max(seconds, 0.0)) for event, seconds in zip(events, self_times, strict=True)]


def union_s(events: Iterable[Event]) -> float:
    """Return the time in which at least one event was running."""
    total, end = 0.0, float("-inf")
    for event in sorted(events, key=lambda event: event.start_s):
        if event.end_s > end:
            total += event.end_s - max(event.start_s, end)
            end = event.end_s
    return total
