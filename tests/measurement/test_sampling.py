"""Sampling on a fake clock: work takes exactly as long as a test says, and only when it is waited for."""

from __future__ import annotations

import dataclasses
import gc
import random
import threading
import time
from collections import Counter
from types import SimpleNamespace

import pytest
from doubles.clock import PROFILE, TICK, Machine, Output
from pytest import approx

from measurement.controls import independent_timer
from measurement.first_figures import first_figures
from measurement.profiles import PROFILES, Profile
from measurement.sampling import (
    OUTPUTS_KEPT,
    Clocks,
    Variant,
    first_call,
    take_parts,
    take_rounds,
    take_sample,
    take_single_calls,
    time_calls,
)
from worker.explanation import EagerProfile


@pytest.fixture
def machine() -> Machine:
    return Machine()


def rounds_of(machine: Machine, variants: list[Variant], seed: int = 0, profile: Profile = PROFILE) -> list[tuple]:
    """Take rounds; the names called, a tuple a round."""
    begun = len(machine.called())
    take_rounds(variants, profile, machine.clocks, random.Random(seed))
    names = machine.called()[begun:]
    return [tuple(names[i : i + len(variants)]) for i in range(0, len(names), len(variants))]


def test_a_round_samples_every_mode_once_in_random_order(machine):
    rounds = rounds_of(machine, [machine.variant(name, TICK) for name in "abc"])
    assert all(sorted(order) == ["a", "b", "c"] for order in rounds)
    # 3000 calls in the budget make 1024 rounds; every order comes about equally often (171), every place too.
    assert len(rounds) == 1024
    orders = Counter(rounds)
    assert len(orders) == 6
    assert all(110 < count < 240 for count in orders.values())


def test_the_order_is_the_seed_s():
    def orders(seed: int) -> list[tuple]:
        machine = Machine()
        return rounds_of(machine, [machine.variant(name, TICK) for name in "ab"], seed)

    assert orders(1) == orders(1)
    assert orders(1) != orders(2)


def test_the_first_call_is_timed_apart(machine):
    variant = machine.variant("a", lambda call: 3.0 if call == 1 else TICK)
    assert isinstance(first_call(variant, machine.clocks), Output)
    assert variant.first_call_s == 3.0
    assert (variant.samples, variant.warmup_calls, variant.wall_seconds) == ([], 0, 0.0)
    take_sample(variant, machine.clocks)
    assert variant.samples == [TICK]


@pytest.mark.parametrize(("each_call", "synchronizations"), [(True, 5), (False, 1)])
def test_the_clock_is_read_only_when_no_work_is_outstanding(machine, each_call, synchronizations):
    """`Machine.read` and `synchronize` assert it; here that they are asked at all, and how often."""
    variant = machine.variant("a", TICK, synchronize_each_call=each_call, calls_per_sample=5)
    take_sample(variant, machine.clocks)
    events = [event for event, _ in machine.log]
    assert (events[0], events[-1]) == ("clock", "clock")
    assert Counter(events) == {"clock": 2, "call": 5, "synchronize": synchronizations}
    assert events[-2] == "synchronize"
    assert variant.samples == [TICK]


def test_the_double_notices_a_missing_synchronization(machine):
    variant = machine.variant("a", TICK)
    variant.synchronize = lambda output: None
    with pytest.raises(AssertionError, match="outstanding"):
        take_sample(variant, machine.clocks)


def test_the_double_notices_an_output_that_died_early(machine):
    variant = machine.variant("a", TICK)
    variant.step()
    with pytest.raises(AssertionError, match="died"):
        variant.synchronize(variant.step())


@pytest.mark.parametrize(("calls", "seen"), [(16, {TICK}), (1, {3 * TICK})])
def test_a_sample_of_several_calls_does_not_show_what_another_mode_left(machine, calls, seen):
    """The first four calls after another mode take three times as long; a sample of one call has no lead-in."""

    def cold(call: int) -> float:
        latest = machine.called()[::-1]
        return 3 * TICK if "b" in latest[:5] else TICK

    a, b = machine.variant("a", cold, calls_per_sample=calls), machine.variant("b", TICK, calls_per_sample=2)
    time_calls(b, 2, machine.clocks)
    take_rounds([a, b], PROFILE, machine.clocks, random.Random(0))
    assert set(a.samples) == seen
    assert set(b.samples) == {TICK}


@pytest.mark.parametrize(("each_call", "most"), [(True, 1), (False, 1 + OUTPUTS_KEPT)])
def test_a_sample_holds_its_latest_outputs(machine, each_call, most):
    """Where calls are queued, the outputs before the latest one too, in memory that is used again and again."""
    variant, counts = machine.variant("a", TICK, synchronize_each_call=each_call, calls_per_sample=9), []
    step = variant.step

    def watched():
        output = step()
        counts.append(len(machine.alive["a"]))
        return output

    variant.step = watched
    take_sample(variant, machine.clocks)
    assert variant.samples == [TICK]
    assert max(counts) == most
    assert len(machine.alive["a"]) == 0


def test_cpu_per_wall_counts_the_timed_calls_alone(machine):
    variant = machine.variant("a", TICK, cores=1.5)
    assert variant.cpu_per_wall is None
    first_call(variant, machine.clocks)
    machine.cpu += 100.0
    take_sample(variant, machine.clocks)
    take_sample(variant, machine.clocks)
    assert variant.cpu_per_wall == 1.5
    assert variant.wall_seconds == 2 * TICK


def test_the_cpu_clock_counts_the_work_of_every_thread():
    """However many processors the threads get."""
    clock, worked = Clocks().cpu, []

    def work() -> None:
        while time.thread_time() < 0.05:
            sum(range(1000))
        worked.append(time.thread_time())

    before, thread = clock(), threading.Thread(target=work)
    thread.start()
    thread.join()
    assert clock() - before > 0.9 * worked[0]


def test_the_compile_counter_is_read_before_sampling(machine):
    variant = machine.variant("a", 16 * TICK)
    variant.compilations = lambda: len(machine.called())
    first_call(variant, machine.clocks)
    take_rounds([variant], PROFILE, machine.clocks, random.Random(0))
    assert variant.compilations_before == 1


def test_garbage_collection_is_off_inside_and_back_afterwards(machine):
    seen = []
    variant = machine.variant("a", lambda call: seen.append(gc.isenabled()) or 0.25)
    assert gc.isenabled()
    take_rounds([variant], PROFILE, machine.clocks, random.Random(0))
    assert set(seen) == {False}
    assert gc.isenabled()
    gc.disable()
    try:
        take_rounds([variant], PROFILE, machine.clocks, random.Random(0))
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_garbage_collection_is_back_after_an_exception(machine):
    def fail(call: int) -> float:
        raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError):
        take_rounds([machine.variant("a", fail)], PROFILE, machine.clocks, random.Random(0))
    assert gc.isenabled()


def test_callbacks_run_outside_the_timed_region(machine):
    variant, seen = machine.variant("a", 0.25), []

    def slow(what) -> None:
        seen.append(what)
        machine.now += 0.125
        machine.cpu += 0.125

    take_rounds([variant], PROFILE, machine.clocks, random.Random(0), slow, slow)
    assert variant.samples == [0.25] * 4
    assert variant.cpu_per_wall == 1.0
    assert seen == [variant, 1, variant, 2, variant, 3, variant, 4]


def test_somebody_else_s_timer_replaces_the_clock(machine):
    variant = machine.variant("a", TICK, calls_per_sample=5)
    variant.timer = lambda calls: 0.5 * calls
    take_sample(variant, machine.clocks)
    assert variant.samples == [2.5]
    assert machine.called() == []
    timer = independent_timer(lambda: variant.synchronize(variant.step()))
    timer(7)
    assert len(machine.called()) == 7
    assert machine.queued == []  # it waits for the work


@pytest.mark.parametrize("modes", [1, 2, 3])
@pytest.mark.parametrize("profile", PROFILES.values(), ids=lambda profile: profile.name)
class TestBudgets:
    """Budgets are per mode and launch, for all modes of a group together."""

    def run(self, profile: Profile, modes: int, seconds) -> tuple[Machine, list[Variant]]:
        machine = Machine()
        variants = [machine.variant(str(index), seconds) for index in range(modes)]
        take_rounds(variants, profile, machine.clocks, random.Random(0))
        assert {len(variant.samples) for variant in variants} == {len(variants[0].samples)}
        return machine, variants

    def test_noise_is_measured_until_the_budget_is_spent(self, profile, modes):
        draw = random.Random(0)
        machine, variants = self.run(profile, modes, lambda call: draw.uniform(0.016, 0.032))
        budget = profile.seconds_per_cell * modes / profile.minimum_processes
        assert budget <= machine.now < budget + 0.032 * modes
        assert len(variants[0].samples) > profile.minimum_rounds

    def test_slow_modes_get_their_rounds_beyond_the_budget(self, profile, modes):
        budget = profile.seconds_per_cell / profile.minimum_processes
        _, variants = self.run(profile, modes, budget / 4)
        assert len(variants[0].samples) == profile.minimum_rounds

    def test_the_slowest_end_at_the_maximum(self, profile, modes):
        maximum = profile.maximum_seconds_per_cell / profile.minimum_processes
        machine, variants = self.run(profile, modes, maximum / 2.5)
        assert len(variants[0].samples) == 3 < profile.minimum_rounds
        assert machine.now == approx(1.2 * maximum * modes)

    def test_only_a_profile_that_stops_early_does(self, profile, modes):
        machine, variants = self.run(profile, modes, 16 * TICK)  # no noise: the interval has no width at once
        if profile.stop_early:
            assert len(variants[0].samples) == profile.minimum_rounds
        else:
            assert machine.now >= profile.seconds_per_cell * modes / profile.minimum_processes


def test_early_stopping_goes_by_the_widest_ratio(machine):
    """One quiet mode does not end the sampling of a noisy one."""
    profile, draw = PROFILES["rigorous"], random.Random(0)
    noisy = machine.variant("noisy", lambda call: draw.uniform(0.016, 0.032))
    quiet = [machine.variant(name, 0.016) for name in "ab"]
    take_rounds([*quiet, noisy], profile, machine.clocks, random.Random(0))
    assert machine.now >= 3 * profile.seconds_per_cell / profile.minimum_processes


@pytest.mark.parametrize(("calls", "taken"), [(1, 1), (2, 1), (16, 2), (60, 5), (1000, 10)])
def test_single_calls_are_each_waited_for(machine, calls, taken):
    """Queued calls share the wait, and their mean hides what one of them waits: here half of a tick."""
    variant = machine.variant("a", TICK, queue=TICK / 2, calls_per_sample=calls, synchronize_each_call=False)
    take_rounds([variant], dataclasses.replace(PROFILE, minimum_rounds=3), machine.clocks, random.Random(0))
    assert variant.single_calls == [1.5 * TICK] * taken * len(variant.samples)
    assert (variant.samples[0] < 1.5 * TICK) == (calls > 1)
    assert variant.wall_seconds == approx(sum(variant.samples) * calls)  # the sample's time, not theirs


def test_the_parts_of_a_call_are_each_waited_for(machine):
    """Beside the samples, whose calls wait for the last part alone."""
    variant = machine.variant("a", lambda call: call * TICK, calls_per_sample=2)
    variant.parts = lambda: (variant.step() for _ in range(3))
    take_parts(variant, machine.clocks)
    assert variant.parts_s == [(TICK, 2 * TICK, 3 * TICK)]
    take_rounds([variant], PROFILE, machine.clocks, random.Random(0))
    assert len(variant.parts_s) == 1 + len(variant.samples)
    whole = machine.variant("b", TICK)
    take_parts(whole, machine.clocks)
    assert whole.parts_s == []


def test_somebody_else_s_timer_times_no_single_calls(machine):
    variant = machine.variant("a", TICK, calls_per_sample=5)
    variant.timer = lambda calls: 0.5
    take_sample(variant, machine.clocks)
    take_single_calls(variant, machine.clocks)
    assert variant.single_calls == []


def test_first_figures_of_a_pair_are_of_the_same_rounds():
    machine = Machine()
    eager, graph = machine.variant("eager", 0.02), machine.variant("graph", 0.005)
    both = first_figures([eager, graph], PROFILE, machine.clocks, lambda variant: None)
    assert both.seconds == pytest.approx([0.02, 0.005]) and both.speedup == pytest.approx(4) and not both.slowed
    alone = first_figures([graph], PROFILE, machine.clocks, lambda variant: None)
    assert alone.seconds == pytest.approx([0.005]) and alone.speedup is None
    assert not eager.samples and not graph.samples


@pytest.mark.parametrize(
    "slow_seconds, known_s, speedup, slowed", [(0.2, 0.3, 4, False), (9, 0.3, 8, True), (9, None, 8, False)]
)
def test_first_figures_are_of_rounds_on_a_host_at_full_speed(slow_seconds, known_s, speedup, slowed):
    """Only eager mode waits for the core. A speed that is slow from the start is unknown."""
    machine = Machine()

    def slowness() -> float:
        return 2.0 if machine.now < slow_seconds else 1.0

    eager = machine.variant("eager", lambda call: 0.02 * slowness(), host_s=0.02)
    graph = machine.variant("graph", 0.005, host_s=0.0001)
    control = lambda: (0.3 * slowness(),)  # noqa: E731
    found = first_figures([eager, graph], PROFILE, machine.clocks, lambda variant: None, control, known_s)
    assert found.seconds == pytest.approx([0.005 * speedup, 0.005]) and found.speedup == pytest.approx(speedup)
    assert found.slowed == slowed and found.full_s == (known_s or 0.6)


def test_a_bound_is_of_warm_calls():
    """The first calls on a GPU take longer, and a profile's bound would show an idle device."""
    machine = Machine()
    eager = machine.variant("eager", lambda call: 0.009 if call < 20 else 0.003)
    profiled = SimpleNamespace(context=SimpleNamespace(clocks=machine.clocks))
    assert EagerProfile.warm_latency(profiled, eager) == pytest.approx(0.003)
    slow = machine.variant("slow", 5.0)
    before = machine.now
    assert EagerProfile.warm_latency(profiled, slow) == pytest.approx(5.0) and machine.now - before < 50
