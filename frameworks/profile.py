"""What a framework's profiler recorded, reduced to the time of every kernel. No clock is read here."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from frameworks.adapter import Step


@dataclass(frozen=True)
class Event:
    """A kernel or operator at work: seconds from the trace's own zero. `lane` is a thread or a stream."""

    name: str
    start_s: float
    duration_s: float
    lane: Any = 0

    @property
    def end_s(self) -> float:
        return self.start_s + self.duration_s


@dataclass(frozen=True)
class Profile:
    """Seconds and counts per call, by kernel.

    `busy_s` is the time in which at least one kernel was at work, `wall_s` the time from the first call's start to the
    last one's end, both under the profiler. `trace` is the file the framework wrote for a trace viewer.
    """

    kernels: tuple[tuple[str, float, float], ...]  # name, seconds and occurrences per call; the longest first
    wall_s: float
    busy_s: float
    trace: str | None = None

    def to_json(self) -> dict:
        return asdict(self)


class Profiler(Protocol):
    """A framework's profiler: `frameworks/<name>/profiler.py` holds a class of this name.

    It is made once a process, before anything is compiled, with the folder into which the environment of
    `Framework.dumps` has compilers write what they made.
    """

    def profile(self, step: Step, synchronize: Callable[[Any], None], calls: int, folder: Path) -> Profile:
        """Profile `calls` calls of a warm step; files for a trace viewer go into `folder`."""


def reduce(events: Iterable[Event], wall_s: float, calls: int, trace: Path | None = None) -> Profile:
    """The profile of `calls` calls that took `wall_s` seconds together."""
    events = [event for event in events if event.duration_s > 0]
    seconds: dict[str, float] = defaultdict(float)
    counts: dict[str, int] = defaultdict(int)
    for event, own in own_times(events):
        seconds[event.name] += own
        counts[event.name] += 1
    kernels = sorted(seconds, key=lambda name: -seconds[name])
    return Profile(
        kernels=tuple((name, seconds[name] / calls, counts[name] / calls) for name in kernels),
        wall_s=wall_s / calls,
        busy_s=union_s(events) / calls,
        trace=str(trace) if trace else None,
    )


def own_times(events: Sequence[Event]) -> list[tuple[Event, float]]:
    """Each event with its duration less that of the events inside it on the same lane."""
    own = {}
    lanes = defaultdict(list)
    for index, event in enumerate(events):
        own[index] = event.duration_s
        lanes[event.lane].append(index)
    for members in lanes.values():
        around: list[int] = []  # the events that are open, the outermost first
        for index in sorted(members, key=lambda i: (events[i].start_s, -events[i].duration_s)):
            while around and events[around[-1]].end_s <= events[index].start_s:
                around.pop()
            if around:
                own[around[-1]] -= events[index].duration_s
            around.append(index)
    return [(event, max(own[index], 0.0)) for index, event in enumerate(events)]


def union_s(events: Iterable[Event]) -> float:
    """The time in which at least one event was under way."""
    total, end = 0.0, float("-inf")
    for event in sorted(events, key=lambda event: event.start_s):
        if event.end_s > end:
            total += event.end_s - max(event.start_s, end)
            end = event.end_s
    return total
