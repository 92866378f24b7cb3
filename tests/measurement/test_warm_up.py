"""Warming up on a fake clock: until two windows of samples agree, or the time is spent."""

from __future__ import annotations

import dataclasses
import math
import random

import pytest
from doubles.clock import PROFILE, TICK, Machine

from measurement import warm_up as warm_up_module
from measurement.profiles import PROFILES
from measurement.sampling import take_rounds
from measurement.warm_up import TRIALS, shorten_samples, warm_up
from plan.plan import profile_of
from plan.sweep import resolve


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_long_calls_are_warmed_up_in_shorter_windows(machine):
    for seconds, calls in ((1.0, 6), (1.0 - TICK, 10)):
        variant = machine.variant("a", seconds)
        warm_up(variant, dataclasses.replace(PROFILE, warmup_seconds=60.0), machine.clocks)
        assert variant.steady
        assert variant.warmup_calls == calls


def test_warm_up_ends_when_two_windows_agree(machine):
    variant = machine.variant("a", TICK)
    warm_up(variant, PROFILE, machine.clocks)
    # A window of single calls to size the sample, then two of 5 x 16 calls.
    assert variant.warmup_calls == len(machine.called()) == 5 + 2 * 80
    assert variant.steady
    assert variant.samples == []


def test_warm_up_waits_for_a_slow_start(machine):
    variant = machine.variant("a", lambda call: 16 * TICK * max(1, 13 - call))
    warm_up(variant, dataclasses.replace(PROFILE, warmup_seconds=60.0), machine.clocks)
    # Calls fall until the twelfth; from then on five and five more are alike, and a window may hold one that is not.
    assert variant.steady
    assert 20 <= variant.warmup_calls <= 12 + 11  # looked for after 10, 15 and 23 samples


def test_warm_up_that_never_settles_ends_at_its_cap(machine):
    variant = machine.variant("a", lambda call: 16 * TICK * 1.1 ** (call // 5))
    warm_up(variant, PROFILE, machine.clocks)
    assert not variant.steady
    assert PROFILE.warmup_seconds < machine.now < PROFILE.warmup_seconds + 1.0


def test_warm_up_of_one_call_longer_than_the_cap_is_one_call(machine):
    variant = machine.variant("a", 10.0)
    warm_up(variant, PROFILE, machine.clocks)
    assert (variant.warmup_calls, variant.steady, variant.calls_per_sample) == (1, None, 1)


@pytest.mark.parametrize(("seconds", "calls", "steady"), [(0.5, 5, None), (0.39, 6, True)])
def test_calls_too_few_to_compare_tell_nothing_of_steadiness(machine, seconds, calls, steady):
    variant = machine.variant("a", seconds)
    warm_up(variant, dataclasses.replace(PROFILES["quick"], warmup_seconds=2.0), machine.clocks)
    assert (variant.steady, variant.warmup_calls) == (steady, calls)


def test_calls_that_compile_until_the_cap_are_unsteady_however_few(machine):
    variant = machine.variant("a", 0.5)
    variant.compilations = lambda: len(machine.called())
    warm_up(variant, dataclasses.replace(PROFILE, warmup_seconds=2.0), machine.clocks)
    assert variant.steady is False


def test_warm_up_waits_for_the_compile_counter_to_rest(machine):
    variant = machine.variant("a", 16 * TICK)
    variant.compilations = lambda: min(len(machine.called()), 12)  # compiles during each of the first 12 calls
    warm_up(variant, PROFILE, machine.clocks)
    # Two windows of five after the twelfth call.
    assert (variant.steady, variant.warmup_calls) == (True, 12 + 10)


def test_warm_up_is_unsteady_while_the_compile_counter_moves(machine):
    variant = machine.variant("a", 16 * TICK)
    variant.compilations = lambda: len(machine.called())
    warm_up(variant, PROFILE, machine.clocks)
    assert not variant.steady
    assert machine.now > PROFILE.warmup_seconds


def test_one_disturbed_call_among_long_ones_does_not_prolong_the_warm_up(machine):
    """Six calls of a second, of which the fifth took twice as long: the medians agree."""
    variant = machine.variant("a", lambda call: 2.0 if call == 5 else 1.0)
    warm_up(variant, dataclasses.replace(PROFILE, warmup_seconds=60.0), machine.clocks)
    assert variant.steady
    assert variant.warmup_calls == 6


@pytest.mark.parametrize(
    ("seconds", "calls"), [(TICK, 16), (TICK / 4, 64), (5 * TICK, 4), (16 * TICK, 1), (17 * TICK, 1), (0.5, 1)]
)
def test_a_sample_lasts_long_enough_or_one_call(machine, seconds, calls):
    variant = machine.variant("a", seconds)
    warm_up(variant, dataclasses.replace(PROFILE, warmup_seconds=60.0), machine.clocks)
    assert variant.steady
    assert variant.calls_per_sample == calls


@pytest.mark.parametrize(("each_call", "calls"), [(True, 16), (False, 40)])
def test_samples_of_queued_calls_are_longer(machine, each_call, calls):
    variant = machine.variant("a", TICK, synchronize_each_call=each_call)
    warm_up(variant, PROFILE, machine.clocks)
    assert variant.calls_per_sample == calls


@pytest.mark.parametrize(
    ("seconds", "queue", "calls"),
    [
        (TICK, TICK / 4, 40),  # 1 % of 25 ticks: the shortest sample is longer
        (TICK, 2 * TICK, 198),  # of 200 ticks
        (TICK, 8 * TICK, 402),  # the longest sample is 0.4 s, or 409.6 ticks
        (8 * TICK, 2 * TICK, 51),  # the longest sample, where a few calls would do for the shortest
        (64 * TICK, 2 * TICK, 7),
        (100 * TICK, 2 * TICK, 4),
        (0.25, TICK, 1),  # two would be longer than the longest
    ],
)
def test_the_queue_is_a_small_share_of_a_sample(machine, seconds, queue, calls):
    variant = machine.variant("a", seconds, queue=queue, synchronize_each_call=False)
    warm_up(variant, dataclasses.replace(PROFILE, warmup_seconds=60.0), machine.clocks)
    assert variant.calls_per_sample == calls
    assert variant.warmup_calls == len(machine.called())


@pytest.mark.parametrize("disturbance", [48 * TICK, 4.0])
def test_disturbed_calls_make_no_endless_sample(machine, disturbance):
    """Each of the single calls after the warm-up is disturbed, as if it were nothing but queue."""
    variant = machine.variant("a", 2 * TICK, synchronize_each_call=False)
    step, disturbed = variant.step, 0

    def call():
        nonlocal disturbed
        if variant.steady and disturbed < TRIALS:
            disturbed += 1
            machine.now += disturbance
        return step()

    variant.step = call
    warm_up(variant, dataclasses.replace(PROFILE, warmup_seconds=60.0), machine.clocks)
    assert variant.steady
    assert disturbed
    assert variant.calls_per_sample * 2 * TICK < 4 * PROFILE.longest_queued_sample_seconds


@pytest.mark.parametrize(("host_s", "calls"), [(None, 402), (0.79 * TICK, 402), (0.8 * TICK, 40), (TICK, 40)])
def test_samples_are_the_shortest_where_the_host_sets_the_pace(machine, host_s, calls):
    variant = machine.variant("a", TICK, queue=8 * TICK, synchronize_each_call=False)
    warm_up(variant, dataclasses.replace(PROFILE, warmup_seconds=60.0), machine.clocks)
    variant.waited_s, variant.host_s = TICK, host_s
    shorten_samples(variant, PROFILE)
    assert variant.calls_per_sample == calls


@pytest.mark.parametrize("seconds", [TICK, 32 * TICK])
def test_the_queue_does_not_matter_where_each_call_is_waited_for(machine, seconds):
    variant = machine.variant("a", seconds, queue=2 * TICK)
    warm_up(variant, dataclasses.replace(PROFILE, warmup_seconds=60.0), machine.clocks)
    assert variant.calls_per_sample == (6 if seconds == TICK else 1)


def test_a_stall_at_the_end_of_the_warm_up_leaves_no_single_calls(machine):
    stall = PROFILE.warmup_seconds + 1.0
    variant = machine.variant(
        "a", lambda call: stall if call == 3 else TICK, queue=2 * TICK, synchronize_each_call=False
    )
    warm_up(variant, PROFILE, machine.clocks)
    assert (variant.steady, variant.calls_per_sample) == (None, 198)


def test_a_compilation_may_end_the_warm_up(machine):
    variant = machine.variant("a", lambda call: 3.0 if call == 1 else TICK, synchronize_each_call=False)
    variant.compilations = lambda: len(machine.called())
    warm_up(variant, PROFILE, machine.clocks)
    assert (variant.steady, variant.calls_per_sample) == (False, 40)


@pytest.mark.parametrize("name", list(PROFILES))
@pytest.mark.parametrize("budget", [0.4, 1.5, 4.0, 50.0])
def test_a_small_budget_has_time_for_all_rounds(name, budget):
    """Samples of queued calls are as long as the budget allows, however long the queue would have them."""
    profile = profile_of(resolve({"profile": name, "budget": str(budget)}))
    longest = profile.maximum_seconds_per_cell
    for seconds, queue in ((0.0103, 0.0024), (0.0153, 0.0026), (0.0005, 0.004)):
        machine = Machine()
        variants = [machine.variant(name, seconds, queue=queue, synchronize_each_call=False) for name in "ab"]
        for variant in variants:
            warm_up(variant, profile, machine.clocks)
        take_rounds(variants, profile, machine.clocks, random.Random(0))
        shortest = profile.queued_sample_seconds + 3 * seconds + 2 * queue  # a call too many, and a single one
        affordable = longest / profile.minimum_processes / 1.35 / shortest
        assert len(variants[0].samples) >= min(profile.minimum_rounds - 2, int(affordable))


@pytest.mark.parametrize("seconds", [0.0005, 0.003, 0.0102, 0.0153, 0.03, 0.07, 0.12])
def test_scatter_does_not_hide_the_queue(seconds):
    """Calls that scatter by 5 %, and a queue of 2.6 ms as on an H200: it stays a small share of every sample."""
    for seed in range(20):
        machine, draw = Machine(), random.Random(seed)
        scattered = lambda call, draw=draw: seconds * (1 + abs(draw.gauss(0, 0.05)))  # noqa: E731
        variant = machine.variant("a", scattered, queue=0.0026, synchronize_each_call=False)
        warm_up(variant, PROFILES["quick"], machine.clocks)
        assert 0.0026 / (variant.calls_per_sample * seconds) < 0.0125


def settling(machine: Machine, excess: float, seconds: float):
    """Calls of 16 ticks that take longer by a share that dies away, as an allocator's or a clock's."""
    return lambda call: 16 * TICK * (1 + excess * math.exp(-machine.now / seconds))


@pytest.mark.parametrize("seconds", [0.5, 2.0, 8.0])
def test_a_slow_drift_is_waited_for(machine, seconds):
    """Windows of five samples agree within 2 % from the first on, at 2 s and 8 s, while calls take 30 % too long."""
    profile = dataclasses.replace(PROFILE, warmup_seconds=60.0, steady_span=0.2)
    variant = machine.variant("a", settling(machine, 0.3, seconds))
    warm_up(variant, profile, machine.clocks)
    assert variant.steady
    left = 0.3 * math.exp(-machine.now / seconds)
    assert left < 0.02


def test_steadiness_is_not_looked_for_after_every_sample(machine):
    """Each look is a chance to find agreement that is none: samples grow by half in between, and so do windows."""
    looks = []
    profile = dataclasses.replace(PROFILE, warmup_seconds=20.0)
    variant = machine.variant("a", lambda call: 16 * TICK * 1.05 ** (call / 5))
    with_looks = warm_up_module.steady

    def watched(earlier, later, tolerance):
        looks.append((len(earlier), len(later)))
        return with_looks(earlier, later, tolerance)

    warm_up_module.steady = watched
    try:
        warm_up(variant, profile, machine.clocks)
    finally:
        warm_up_module.steady = with_looks
    assert not variant.steady
    assert looks[:6] == [(5, 5), (5, 5), (7, 7), (11, 11), (17, 17), (26, 26)]
    assert len(looks) <= 10 < variant.warmup_calls


def test_the_windows_last_a_share_of_the_time_there_is(machine):
    variant = machine.variant("a", 16 * TICK)
    warm_up(variant, dataclasses.replace(PROFILE, warmup_seconds=10.0, steady_span=0.2), machine.clocks)
    assert variant.steady
    assert 2.0 <= machine.now < 2.1


def test_calls_that_scatter_are_steady_as_far_as_can_be_told():
    for seed in range(10):
        machine, draw = Machine(), random.Random(seed)
        variant = machine.variant("a", lambda call, draw=draw: 16 * TICK * math.exp(draw.gauss(0, 0.1)))
        warm_up(variant, dataclasses.replace(PROFILE, warmup_seconds=6.0, steady_span=0.2), machine.clocks)
        assert variant.steady
