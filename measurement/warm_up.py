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
TRIALS = 5  # of one call and of several, to time the queue
# A mode that compiles at every call is called until it gives up or settles, within these limits.
COMPILING_CALLS, COMPILING_SECONDS = 16, 120.0
FEW_CALLS = 5  # whose scatter exceeds the queue's time


def warm_up(variant: Variant, profile: Profile, clocks: Clocks) -> None:
    """Call until the last two thirds of the samples agree without compilation, or time is up.

    The thirds grow with the warm-up, which reveals slow drift too. They are compared only after the number of samples
    grew by half: comparing after every sample would stop at the first chance agreement.

    Sets the number of calls per sample to match the profile, from the latest latency and, for queued calls, the time of
    the queue. `steady` stays None if time ran out before any comparison and nothing compiled: half-second calls give
    fewer than six samples in two seconds.
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
        # A new sample length invalidates the window, unless it hardly changed.
        same_length = target == 1 == variant.calls_per_sample or 0.5 <= target / variant.calls_per_sample <= 2
        if len(recent) >= length and not same_length:
            variant.calls_per_sample = target
            recent.clear()
        if not recent:
            next_look = 0


def queued_calls(variant: Variant, profile: Profile, clocks: Clocks) -> int:
    """Return how many queued calls a sample needs for filling and emptying the queue to be about `queue_share` of it.

    n queued calls of t seconds last n t + q: the device waits for the first call to be submitted, and the host for the
    last to end. Samples of one call and of several give t and q. If a few calls fill the shortest sample, slight
    scatter would hide q, so samples have the maximum length.
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
    # Disturbed single calls suggest a queue time that leaves none for the calls.
    each = max(mean - queue / several, mean / 4)
    target = longest if few else min(max(profile.queued_sample_seconds, queue / profile.queue_share), longest)
    return max(1, math.ceil((target - queue) / each))


def shorten_samples(variant: Variant, profile: Profile) -> None:
    """Set the shortest sample if the host limits the speed, since no queue fills then.

    The queue's apparent time is then scatter, and a short sample spans fewer changes of the host's speed.
    """
    if variant.waited_s is None or variant.host_s is None or variant.host_s < HOST_SHARE * variant.waited_s:
        return
    shortest = max(FEW_CALLS, math.ceil(profile.queued_sample_seconds / variant.waited_s))
    variant.calls_per_sample = min(variant.calls_per_sample, shortest)


def queue_seconds(single: float, mean: float, calls: int) -> float:
    """Return the time to fill and empty the queue, from a single call's t + q and the mean t + q / n of n queued.

    Negative if scatter hides it.
    """
    return (single - mean) * calls / (calls - 1)


def _timed(variant: Variant, calls: int, clocks: Clocks) -> float:
    variant.warmup_calls += calls
    return time_calls(variant, calls, clocks)


def _window_length(recent: Sequence[float], profile: Profile) -> int:
    """Return how many samples make a window of the warm-up: fewer of long calls, which scatter less and cost more."""
    long = bool(recent) and median(recent[-profile.long_call_window :]) >= profile.long_call_seconds
    return profile.long_call_window if long else profile.warmup_window
