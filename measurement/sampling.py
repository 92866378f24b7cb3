"""Taking samples: first calls, and rounds in which every mode is timed once, in random order.

This is the only place that reads a clock around a framework's call. The clocks are handed in, so tests run it on a
fake one.
"""

from __future__ import annotations

import gc
import math
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from measurement.profiles import LEAD_IN_SHARE, SINGLE_CALLS_SHARE, Profile
from measurement.statistics import batch_interval, log_ratios

# Outputs that a sample holds while the next call runs, as a user does who works on them meanwhile. More would fill a
# GPU, and always new memory is slow: XLA keeps what it recorded of calls to libraries for 16 sets of addresses and
# records anew for another one, which made jax.jit 1.4 times as slow on an H200. With the one that is being made they
# are as many as the inputs.
OUTPUTS_KEPT = 3
# Tail latency is of calls that are each waited for, which a mean over a sample has none of. They are taken in every
# round, so that they meet what a whole launch meets.
MOST_SINGLE_CALLS = 10


@dataclass(frozen=True)
class Clocks:
    """The wall clock and the CPU clock of the whole process, both in seconds."""

    wall: Callable[[], float] = time.perf_counter
    cpu: Callable[[], float] = time.process_time


@dataclass
class Contender:
    """One mode under measurement. `compilations` reads its compile counter, which must rest while it is timed."""

    name: str
    step: Callable[[], Any]
    synchronize: Callable[[Any], None]
    compilations: Callable[[], int | None] = lambda: None
    synchronize_each_call: bool = True
    first_call_s: float = 0.0
    warmup_calls: int = 0
    steady: bool | None = None  # None where the warm-up compared nothing
    calls_per_sample: int = 1
    samples: list[float] = field(default_factory=list)  # seconds per call, one a round
    single_calls: list[float] = field(default_factory=list)  # seconds of calls that were each waited for
    parts: Callable[[], Iterator[Any]] | None = None  # a call's outputs one after the other, where it has several
    parts_s: list[tuple[float, ...]] = field(default_factory=list)  # seconds of each of a call's, each waited for
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    compilations_before: int | None = None
    timer: Callable[[int], float] | None = None  # seconds per call over so many calls, by an independent timer
    get_ready: Callable[[], None] | None = None  # makes the next call's inputs, where each call needs new ones

    @property
    def cpu_per_wall(self) -> float | None:
        """Cores kept busy by this mode's samples: process CPU time over wall time."""
        known = self.wall_seconds and not math.isnan(self.cpu_seconds)
        return self.cpu_seconds / self.wall_seconds if known else None


def first_call(contender: Contender, clocks: Clocks) -> Any:
    """Time the first call alone, compilation included; returns its output."""
    if contender.get_ready:
        contender.get_ready()
        contender.synchronize(None)
    start = clocks.wall()
    output = contender.step()
    contender.synchronize(output)
    contender.first_call_s = clocks.wall() - start
    return output


def time_calls(contender: Contender, calls: int, clocks: Clocks) -> float:
    """Seconds per call over `calls` calls. On entry and on return no work of this contender is outstanding."""
    if contender.timer:
        return contender.timer(calls)
    step, synchronize, wall = contender.step, contender.synchronize, clocks.wall
    if contender.get_ready:
        return _time_prepared_calls(contender, contender.get_ready, calls, clocks)
    if contender.synchronize_each_call:
        start = wall()
        for _ in range(calls):
            synchronize(step())
        return (wall() - start) / calls
    outputs: deque = deque(maxlen=OUTPUTS_KEPT)
    start = wall()
    for _ in range(calls):
        outputs.append(step())
    synchronize(outputs[-1])
    return (wall() - start) / calls


def _time_prepared_calls(contender: Contender, get_ready: Callable[[], None], calls: int, clocks: Clocks) -> float:
    """Return seconds per call over calls that each need new inputs, which are made before each call is timed."""
    spent = 0.0
    for _ in range(calls):
        get_ready()
        contender.synchronize(None)
        start = clocks.wall()
        contender.synchronize(contender.step())
        spent += clocks.wall() - start
    return spent / calls


def lead_in(contender: Contender, clocks: Clocks) -> None:
    """Calls before a sample of several, whose time is not kept: a loop's speed is asked for, not a cold start's."""
    if contender.calls_per_sample > 1:
        time_calls(contender, math.ceil(LEAD_IN_SHARE * contender.calls_per_sample), clocks)


def take_sample(contender: Contender, clocks: Clocks) -> None:
    """Add one sample with the CPU time it took, which is not known where inputs are made between calls."""
    cpu = clocks.cpu()
    seconds = time_calls(contender, contender.calls_per_sample, clocks)
    contender.cpu_seconds += clocks.cpu() - cpu if contender.get_ready is None else math.nan
    contender.wall_seconds += seconds * contender.calls_per_sample
    contender.samples.append(seconds)


def take_single_calls(contender: Contender, clocks: Clocks) -> None:
    """After a sample, calls for a tenth of its time, each timed alone and waited for; a sample of one call is one."""
    if contender.calls_per_sample == 1:
        contender.single_calls.append(contender.samples[-1])
    elif not contender.timer:
        seconds = SINGLE_CALLS_SHARE * contender.calls_per_sample * contender.samples[-1]
        calls: list[float] = []
        while len(calls) < MOST_SINGLE_CALLS and sum(calls) < seconds:
            calls.append(time_calls(contender, 1, clocks))
        contender.single_calls += calls


def take_parts(contender: Contender, clocks: Clocks) -> None:
    """Where a call's outputs come one after the other, one more call: the seconds until each is there."""
    if contender.parts is None:
        return
    seconds, before = [], clocks.wall()
    for output in contender.parts():
        contender.synchronize(output)
        now = clocks.wall()
        seconds.append(now - before)
        before = now
    contender.parts_s.append(tuple(seconds))


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect now, and not again inside."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def half_width(contenders: Sequence[Contender]) -> float:
    """The widest relative half-width among the ratios to the first contender; infinite while unknown."""
    baseline, *others = contenders
    if not others:
        interval = batch_interval(baseline.samples)
        return interval.relative_half_width if interval else math.inf
    intervals = [batch_interval(log_ratios(baseline.samples, other.samples)) for other in others]
    # The half-width of a log-ratio is the relative half-width of the ratio.
    return max((i.high - i.low) / 2 if i else math.inf for i in intervals)


def take_rounds(
    contenders: Sequence[Contender],
    profile: Profile,
    clocks: Clocks,
    order: random.Random,
    on_round: Callable[[int], None] = lambda rounds: None,
    on_sample: Callable[[Contender], None] = lambda contender: None,
    control: Callable[[], float] | None = None,
) -> list[float]:
    """Take rounds until the profile's rule says stop. In a round every contender is sampled once, in random order.

    The budget is per contender and launch; it bounds the time of all contenders together, so that a slow mode does
    not starve a fast one of its rounds. `on_sample`, `on_round` and `control` run outside the timed region.

    Returns, a value a round, the largest of what `control` gave before each contender's turn; nothing without one. A
    mean would hide one slow turn among many modes.
    """
    controls: list[float] = []
    for contender in contenders:
        contender.compilations_before = contender.compilations()
    share = len(contenders) / profile.minimum_launches
    start = clocks.wall()
    rounds, next_check = 0, profile.minimum_rounds
    with no_garbage_collection():
        while True:
            turns = []
            for contender in order.sample(contenders, len(contenders)):
                on_sample(contender)
                if control:
                    turns.append(control())
                lead_in(contender, clocks)
                take_sample(contender, clocks)
                take_single_calls(contender, clocks)
                take_parts(contender, clocks)
            rounds += 1
            controls += [max(turns)] if turns else []
            on_round(rounds)
            spent = clocks.wall() - start
            if spent >= profile.maximum_seconds_per_cell * share:
                return controls
            if rounds < profile.minimum_rounds:
                continue
            if spent >= profile.seconds_per_cell * share:
                return controls
            if profile.stop_early and rounds >= next_check:
                next_check = math.ceil(rounds * 1.25)  # looking rarely keeps the interval's coverage
                if half_width(contenders) <= profile.target_half_width / 2:
                    return controls
