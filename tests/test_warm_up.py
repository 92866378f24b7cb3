"""Warming up on a fake clock: until two windows of samples agree, or the time is spent."""

from __future__ import annotations

import dataclasses

import pytest
from doubles.clock import PROFILE, TICK, Machine

from measurement.sampling import warm_up


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_long_calls_are_warmed_up_in_shorter_windows(machine):
    for seconds, calls in ((1.0, 6), (1.0 - TICK, 10)):
        contender = machine.contender("a", seconds)
        warm_up(contender, dataclasses.replace(PROFILE, warmup_seconds=60.0), machine.clocks)
        assert contender.steady
        assert contender.warmup_calls == calls


def test_warm_up_ends_when_two_windows_agree(machine):
    contender = machine.contender("a", TICK)
    warm_up(contender, PROFILE, machine.clocks)
    # A window of single calls to size the sample, then two of 5 x 16 calls.
    assert contender.warmup_calls == len(machine.called()) == 5 + 2 * 80
    assert contender.steady
    assert contender.samples == []


def test_warm_up_waits_for_a_slow_start(machine):
    contender = machine.contender("a", lambda call: 16 * TICK * max(1, 13 - call))
    warm_up(contender, dataclasses.replace(PROFILE, warmup_seconds=60.0), machine.clocks)
    # Calls fall until the twelfth; from then on five and five more are alike, and a window may hold one that is not.
    assert contender.steady
    assert 20 <= contender.warmup_calls <= 12 + 2 * 5


def test_warm_up_that_never_settles_ends_at_its_cap(machine):
    contender = machine.contender("a", lambda call: 16 * TICK * 1.1 ** (call // 5))
    warm_up(contender, PROFILE, machine.clocks)
    assert not contender.steady
    assert PROFILE.warmup_seconds < machine.now < PROFILE.warmup_seconds + 1.0


def test_warm_up_of_one_call_longer_than_the_cap_is_one_call(machine):
    contender = machine.contender("a", 10.0)
    warm_up(contender, PROFILE, machine.clocks)
    assert (contender.warmup_calls, contender.steady, contender.calls_per_sample) == (1, False, 1)


def test_warm_up_waits_for_the_compile_counter_to_rest(machine):
    contender = machine.contender("a", 16 * TICK)
    contender.compilations = lambda: min(len(machine.called()), 12)  # compiles during each of the first 12 calls
    warm_up(contender, PROFILE, machine.clocks)
    # Two windows of five after the twelfth call.
    assert (contender.steady, contender.warmup_calls) == (True, 12 + 10)


def test_warm_up_is_unsteady_while_the_compile_counter_moves(machine):
    contender = machine.contender("a", 16 * TICK)
    contender.compilations = lambda: len(machine.called())
    warm_up(contender, PROFILE, machine.clocks)
    assert not contender.steady
    assert machine.now > PROFILE.warmup_seconds


def test_one_disturbed_call_among_long_ones_does_not_prolong_the_warm_up(machine):
    """Six calls of a second, of which the fifth took twice as long: the medians agree."""
    contender = machine.contender("a", lambda call: 2.0 if call == 5 else 1.0)
    warm_up(contender, dataclasses.replace(PROFILE, warmup_seconds=60.0), machine.clocks)
    assert contender.steady
    assert contender.warmup_calls == 6
