"""Warming up until steady, and finding how many calls a sample needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from measurement.host import HOST_SHARE
from measurement.profiles import Profile
from measurement.sampling import Clocks, Variant, time_calls
from measurement.statistics import steady

LOOK_AGAIN = 1.5  # times as many samples
TRIALS = 5  # of a single call, and of several, for what the queue takes
# A mode that compiles at every call is called until it gives up or settles: so often, and for so long at most.
COMPILING_CALLS, COMPILING_SECONDS = 16, 120.0
FEW_CALLS = 5  # which scatter by more than the queue takes


def warm_up(variant: Variant, profile: Profile, clocks: Clocks) -> None:
    """Call until the last two thirds of the samples agree with no compile counter moving, or time is up.

    The thirds grow with the warm-up, so that slow drift shows as well. They are compared seldom, each time the samples
    have become half as many again: a comparison after every sample stops at the first chance agreement.

    Sets the number of calls a sample needs to last as long as the profile says. The latest latency decides, and with
    queued calls the time of the queue. `steady` stays None where time was up before any comparison and no compile
    counter moved: a call of half a second has no six samples in two seconds.
    """
    variant.steady = None
    queued = not variant.synchronize_each_call
    shortest = profile.queued_sample_seconds if queued else profile.sample_seconds
    start, shortest_span = clocks.wall(), profile.warmup_seconds * profile.steady_span
    deadline = start + profile.warmup_seconds
    recent: list[float] = []
    next_look = 0
    while True:
        before = variant.compilations()
        recent.append(_timed(variant, variant.calls_per_sample, clocks))
        now = clocks.wall()
        length = _window_length(recent, profile)
        target = max(1, math.ceil(shortest / max(median(recent[-length:]), 1e-9)))
        compiling = variant.compilations() != before
        if compiling:
            variant.steady = False
            recent.clear()
        elif len(recent) >= max(next_look, 2 * length) and sum(recent) * variant.calls_per_sample >= shortest_span:
            window = max(length, len(recent) // 3)
            variant.steady = steady(recent[-2 * window : -window], recent[-window:], profile.steady_median)
            next_look = math.ceil(len(recent) * LOOK_AGAIN)
        compiling &= variant.warmup_calls < COMPILING_CALLS and now < start + COMPILING_SECONDS
        if variant.steady or (now > deadline and not compiling):
            variant.calls_per_sample = queued_calls(variant, profile, clocks) if queued else target
            return
        # A changed sample length changes what a window is, unless it hardly changed.
        same_length = target == 1 == variant.calls_per_sample or 0.5 <= target / variant.calls_per_sample <= 2
        if len(recent) >= length and not same_length:
            variant.calls_per_sample = target
            recent.clear()
        if not recent:
            next_look = 0


def queued_calls(variant: Variant, profile: Profile, clocks: Clocks) -> int:
    """Return how many queued calls a sample needs for filling and emptying the queue to be about `queue_share` of it.

    n queued calls of t seconds last n t + q: the device waits for the first call to be submitted, and the host for the
    last one's end. Samples of one call and of several give t and q. Where a few calls fill the shortest sample, a
    little scatter would hide q, and a sample is as long as it may be.
    """
    longest = profile.longest_queued_sample
    singles: list[float] = []
    while len(singles) < TRIALS and sum(singles) < longest:
        singles.append(_timed(variant, 1, clocks))
    single = median(singles)
    if FEW_CALLS * single > longest:
        return max(1, int(longest / single))
    several = max(FEW_CALLS, math.ceil(profile.queued_sample_seconds / single))
    few = several == FEW_CALLS
    mean = median(_timed(variant, several, clocks) for _ in range(1 if few else TRIALS))
    queue = max(queue_seconds(single, mean, several), 0.0)
    # Single calls that were disturbed seem to have a queue that leaves the calls no time at all.
    each = max(mean - queue / several, mean / 4)
    target = longest if few else min(max(profile.queued_sample_seconds, queue / profile.queue_share), longest)
    return max(1, math.ceil((target - queue) / each))


def shorten_samples(variant: Variant, profile: Profile) -> None:
    """Set the shortest sample where the host limits the speed, since no queue fills then.

    The time that filling and emptying a queue seems to take is then scatter; a short sample sees fewer changes of the
    host's speed.
    """
    if variant.waited_s is None or variant.host_s is None or variant.host_s < HOST_SHARE * variant.waited_s:
        return
    shortest = max(FEW_CALLS, math.ceil(profile.queued_sample_seconds / variant.waited_s))
    variant.calls_per_sample = min(variant.calls_per_sample, shortest)


def queue_seconds(single: float, mean: float, calls: int) -> float:
    """Return the time to fill and empty the queue, from a single call's t + q and the mean t + q / n of n queued.

    Negative where scatter hides it.
    """
    return (single - mean) * calls / (calls - 1)


def _timed(variant: Variant, calls: int, clocks: Clocks) -> float:
    variant.warmup_calls += calls
    return time_calls(variant, calls, clocks)


def _window_length(recent: Sequence[float], profile: Profile) -> int:
    """Return how many samples make a window of the warm-up: fewer of long calls, which scatter less and cost more."""
    long = bool(recent) and median(recent[-profile.long_call_window :]) >= profile.long_call_seconds
    return profile.long_call_window if long else profile.warmup_window
