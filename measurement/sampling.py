"""Taking samples: first calls, and rounds in which every mode is timed once, in random order.

This is the only place that reads a clock around a framework's call. Clocks are parameters, so tests pass a fake one.
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

from measurement import host
from measurement.profiles import LEAD_IN_SHARE, SINGLE_CALLS_SHARE, Profile
from measurement.statistics import batch_interval

# Outputs that a sample keeps while the next call runs, like a user who works on them meanwhile. More would fill a GPU,
# and new memory at each call is slow: XLA caches recorded library calls for 16 sets of addresses and records again for
# others, which made jax.jit 1.4 times as slow on an H200. With the output in progress there are as many as input sets.
OUTPUTS_KEPT = 3
# Tail latency needs calls that are each waited for; a mean over a sample has no tail. Every round takes some, so they
# cover the whole process.
MOST_SINGLE_CALLS = 10


Control = Callable[[], Sequence[float]]  # returns the host's loop in seconds, one value a rank


@dataclass(frozen=True)
class Clocks:
    """The wall clock and the CPU clock of the whole process, both in seconds."""

    wall: Callable[[], float] = time.perf_counter
    cpu: Callable[[], float] = time.process_time


@dataclass
class Variant:
    """One mode under measurement. `compilations` reads its compile counter, which must not move during timing."""

    name: str
    step: Callable[[], Any]
    synchronize: Callable[[Any], None]
    compilations: Callable[[], int | None] = lambda: None
    synchronize_each_call: bool = True
    first_call_s: float = 0.0
    warmup_calls: int = 0
    steady: bool | None = None  # None if the warm-up compared nothing
    calls_per_sample: int = 1
    samples: list[float] = field(default_factory=list)  # seconds per call, one a round
    loops: list[float] = field(default_factory=list)  # seconds of the host's loop around each, the slower of two
    single_calls: list[float] = field(default_factory=list)  # seconds of calls that were each waited for
    waited_s: float | None = None  # seconds of a call that is waited for; this and the next on a GPU
    host_s: float | None = None  # of these, until the call returns
    parts: Callable[[], Iterator[Any]] | None = None  # a call's outputs in turn, if it has several
    parts_s: list[tuple[float, ...]] = field(default_factory=list)  # seconds of each such output, waited for
    cpu_seconds: float = 0.0
    wall_seconds: float = 0.0
    compilations_before: int | None = None
    timer: Callable[[int], float] | None = None  # seconds per call over so many calls, by an independent timer
    get_ready: Callable[[], None] | None = None  # makes the next call's inputs, if each call needs new ones

    @property
    def cpu_per_wall(self) -> float | None:
        """Cores kept busy by this mode's samples: process CPU time over wall time."""
        known = self.wall_seconds and not math.isnan(self.cpu_seconds)
        return self.cpu_seconds / self.wall_seconds if known else None


def first_call(variant: Variant, clocks: Clocks) -> Any:
    """Time the first call alone, compilation included; return its output."""
    if variant.get_ready:
        variant.get_ready()
        variant.synchronize(None)
    start = clocks.wall()
    output = variant.step()
    variant.synchronize(output)
    variant.first_call_s = clocks.wall() - start
    return output


def time_calls(variant: Variant, calls: int, clocks: Clocks) -> float:
    """Return seconds per call over `calls` calls. On entry and on return no work of this variant is outstanding."""
    if variant.timer:
        return variant.timer(calls)
    step, synchronize, wall = variant.step, variant.synchronize, clocks.wall
    if variant.get_ready:
        return _time_prepared_calls(variant, variant.get_ready, calls, clocks)
    if variant.synchronize_each_call:
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


def _time_prepared_calls(variant: Variant, get_ready: Callable[[], None], calls: int, clocks: Clocks) -> float:
    """Return seconds per call over calls that each need new inputs, which are made before each call is timed."""
    spent = 0.0
    for _ in range(calls):
        get_ready()
        variant.synchronize(None)
        start = clocks.wall()
        variant.synchronize(variant.step())
        spent += clocks.wall() - start
    return spent / calls


def lead_in(variant: Variant, clocks: Clocks) -> None:
    """Call before a sample of several calls, untimed: a sample measures a loop's speed and not a cold start's."""
    if variant.calls_per_sample > 1:
        time_calls(variant, math.ceil(LEAD_IN_SHARE * variant.calls_per_sample), clocks)


def take_sample(variant: Variant, clocks: Clocks) -> None:
    """Add one sample and its CPU time, which is NaN if inputs are made between calls."""
    cpu = clocks.cpu()
    seconds = time_calls(variant, variant.calls_per_sample, clocks)
    variant.cpu_seconds += clocks.cpu() - cpu if variant.get_ready is None else math.nan
    variant.wall_seconds += seconds * variant.calls_per_sample
    variant.samples.append(seconds)


def take_single_calls(variant: Variant, clocks: Clocks) -> None:
    """Time single calls after a sample, each waited for, for a tenth of its time; reuse a one-call sample."""
    if variant.calls_per_sample == 1:
        variant.single_calls.append(variant.samples[-1])
    elif not variant.timer:
        seconds = SINGLE_CALLS_SHARE * variant.calls_per_sample * variant.samples[-1]
        calls: list[float] = []
        while len(calls) < MOST_SINGLE_CALLS and sum(calls) < seconds:
            calls.append(time_calls(variant, 1, clocks))
        variant.single_calls += calls


def take_parts(variant: Variant, clocks: Clocks) -> None:
    """Add the seconds of each output of one more call, if its outputs arrive one by one."""
    if variant.parts is None:
        return
    seconds, before = [], clocks.wall()
    for output in variant.parts():
        variant.synchronize(output)
        now = clocks.wall()
        seconds.append(now - before)
        before = now
    variant.parts_s.append(tuple(seconds))


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


def good_rounds(variants: Sequence[Variant], full_s: float | None) -> list[list[int]]:
    """Return, per ratio to the first variant, the rounds whose turns both count; for a single variant, its own."""
    good = [host.good_turns(v.loops, len(v.samples), full_s, host.limits(v.host_s, v.samples)) for v in variants]
    return [
        [place for place, both in enumerate(zip(good[0], other, strict=True)) if all(both)]
        for other in good[1:] or good
    ]


def half_width(variants: Sequence[Variant], rounds: Sequence[Sequence[int]]) -> float:
    """Return the widest relative half-width among the ratios to the first variant; infinite while unknown.

    `rounds` lists those that count, per ratio.
    """
    baseline, *others = (variant.samples for variant in variants)
    if not others:
        interval = batch_interval([baseline[place] for place in rounds[0]])
        return interval.relative_half_width if interval else math.inf
    intervals = [
        batch_interval([math.log(baseline[place] / other[place]) for place in places])
        for other, places in zip(others, rounds, strict=True)
    ]
    # The half-width of a log-ratio is the relative half-width of the ratio.
    return max((i.high - i.low) / 2 if i else math.inf for i in intervals)


def take_rounds(
    variants: Sequence[Variant],
    profile: Profile,
    clocks: Clocks,
    order: random.Random,
    on_round: Callable[[int], None] = lambda rounds: None,
    on_sample: Callable[[Variant], None] = lambda variant: None,
    control: Control | None = None,
    full_s: float | None = None,
    settle: Control | None = None,
) -> float | None:
    """Take rounds until the profile's rule ends them. In a round every variant is sampled once, in random order.

    The budget is per variant and process; it bounds the time of all variants together, so that a slow mode does not
    starve a fast one of its rounds. `on_sample`, `on_round` and `control` run outside the timed region.

    `control` times the host's loop around every turn, on every rank; `full_s` is its time at full speed before.
    `settle` replaces it before a turn: it may move this thread to a faster CPU (`Cores.settle`). A round is good if the
    host ran at full speed or limits neither mode; the profile's minimum counts good rounds, per ratio. Beyond twice the
    budget sampling continues only if every ratio has a good round or `settle` may find some.

    Returns the new `full_s`; None if no loop was ever timed.
    """
    loops: list[float] = []
    for variant in variants:
        variant.compilations_before = variant.compilations()
    share = len(variants) / profile.minimum_processes
    start = clocks.wall()
    rounds, next_check = 0, profile.minimum_rounds
    with no_garbage_collection():
        while True:
            loops += _take_round(order.sample(variants, len(variants)), clocks, on_sample, control, settle)
            rounds += 1
            on_round(rounds)
            spent = clocks.wall() - start
            if spent >= profile.maximum_seconds_per_cell * share:
                return host.full_seconds(loops, full_s)
            over = spent >= profile.seconds_per_cell * share
            if rounds < profile.minimum_rounds or not (over or (profile.stop_early and rounds >= next_check)):
                continue
            known = host.full_seconds(loops, full_s)
            good = good_rounds(variants, known)
            fewest = min(map(len, good))
            if not (fewest or settle) and spent >= 2 * profile.seconds_per_cell * share:
                return known  # more rounds on a host this slow are useless
            if fewest < profile.minimum_rounds:
                continue
            next_check = math.ceil(rounds * 1.25)  # rare checks keep the interval's coverage
            if over or half_width(variants, good) <= profile.target_half_width / 2:
                return known


def _take_round(
    turns: Sequence[Variant],
    clocks: Clocks,
    on_sample: Callable[[Variant], None],
    control: Control | None,
    settle: Control | None,
) -> list[float]:
    """Sample each variant once, in this order; return seconds of the host's loops around the turns.

    A variant keeps the slowest of the loops around its turn. Without `settle` those after a turn are also those before
    the next.
    """
    loops: list[float] = []
    after: Sequence[float] = ()
    for variant in turns:
        on_sample(variant)
        before = after
        if control and (settle or not loops):
            before = (settle or control)()
            loops += before
        lead_in(variant, clocks)
        take_sample(variant, clocks)
        take_single_calls(variant, clocks)
        take_parts(variant, clocks)
        if control:
            after = control()
            loops += after
            variant.loops.append(max(*before, *after))
    return loops
