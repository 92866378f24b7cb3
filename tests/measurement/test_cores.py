"""Threads move to CPUs at full speed, on a fake host whose CPUs have a speed each."""

from __future__ import annotations

import os
import random
import threading

import pytest
from doubles.clock import TICK, Machine

from measurement import cores
from measurement.cores import FEWEST, Cores
from measurement.energy import take_windows
from measurement.profiles import PROFILES
from measurement.sampling import take_rounds

FAST, SLOW = 1.0, 2.0
MAIN, AUTOGRAD = 0, 7  # threads; the system knows the calling thread as 0 as well


class Host:
    """CPUs of which each takes `seconds` for a loop; threads stay on a CPU while they may, else move to the first."""

    def __init__(self, seconds: list[float]):
        self.seconds, self.now, self.tried = seconds, 0.0, []
        self.allowed = {thread: set(range(len(seconds))) for thread in (MAIN, AUTOGRAD)}
        self.at = dict.fromkeys(self.allowed, 0)
        self.cores = Cores(self.read, range(len(seconds)), self.assign, lambda: [*self.allowed])
        self.readings = 0

    def read(self) -> float:
        """Read the clock; a loop took place since the reading before, unless the reader looks at the time only."""
        self.now += self.seconds[self.at[MAIN]]
        self.readings += 1
        return self.now

    def assign(self, thread: int, cpus) -> None:
        self.allowed[thread] = set(cpus)
        if self.at[thread] not in cpus:
            self.at[thread] = sorted(cpus)[0]
        if len(cpus) == 1:
            self.tried += cpus


@pytest.fixture(autouse=True)
def short_look(monkeypatch):
    monkeypatch.setattr(cores, "STALE_SECONDS", 1e6)


def test_all_threads_leave_slow_cpus():
    machine = Host([SLOW] * 10 + [FAST] * 6)
    assert machine.cores.settle() == FAST
    assert machine.at[MAIN] >= 10 and machine.at[AUTOGRAD] >= 10
    assert len(machine.allowed[AUTOGRAD]) == FEWEST and machine.allowed[AUTOGRAD] == machine.allowed[MAIN]
    machine.cores.release_cpus()
    assert machine.allowed == {MAIN: set(range(16)), AUTOGRAD: set(range(16))}


def test_a_fast_cpu_is_kept():
    machine = Host([FAST] * 8)
    machine.cores.settle()
    machine.tried.clear()
    for _ in range(5):
        assert machine.cores.settle() == FAST
    assert not machine.tried


def test_a_cpu_that_becomes_slow_is_left_and_few_others_are_tried():
    machine = Host([FAST] * 16)
    machine.cores.settle()
    machine.tried.clear()
    machine.seconds[machine.at[MAIN]] = SLOW
    assert machine.cores.settle() == FAST
    assert len(set(machine.tried)) <= FEWEST + 1


def test_other_cpus_are_looked_at_again_after_a_while(monkeypatch):
    machine = Host([FAST] * 8)
    machine.cores.settle()
    machine.tried.clear()
    monkeypatch.setattr(cores, "STALE_SECONDS", 0.0)
    machine.cores.settle()
    assert machine.tried


def test_on_a_host_that_is_slow_everywhere_the_least_slow_cpu_is_used():
    machine = Host([SLOW, SLOW, SLOW, 1.5 * FAST])
    machine.cores.settle()
    machine.seconds[:] = [4.0, 4.0, 3.0, 4.0]
    assert machine.cores.settle() == 3.0 and machine.at[MAIN] == 2


@pytest.mark.parametrize("error", [OSError(22, "Invalid argument"), ProcessLookupError()])
def test_a_thread_that_ended_and_a_cpu_that_is_gone_stop_nothing(error):
    machine = Host([SLOW, FAST, FAST])
    usual = machine.assign

    def assign(thread: int, cpus) -> None:
        if thread == AUTOGRAD:
            raise error
        usual(thread, cpus)

    machine.cores._assign = assign
    assert machine.cores.settle() == FAST
    assert machine.cores.settle() == FAST
    machine.cores.release_cpus()


def test_a_single_cpu_is_not_left():
    machine = Host([SLOW])
    assert machine.cores.settle() == SLOW
    assert not machine.tried


def test_the_system_s_threads_move_and_return():
    """Real threads and CPUs; which CPUs are faster does not matter."""
    before, found, done = os.sched_getaffinity(0), {}, threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    try:
        mover = Cores(iter(range(10_000)).__next__)
        mover._place(sorted(before)[:1])
        found = {thread: os.sched_getaffinity(thread) for thread in (0, other.native_id)}
        mover.release_cpus()
        assert os.sched_getaffinity(0) == os.sched_getaffinity(other.native_id) == before
    finally:
        done.set()
        other.join()
        os.sched_setaffinity(0, before)
    assert [*found.values()] == [{min(before)}] * 2


def test_a_turn_begins_where_the_thread_settled():
    machine = Machine()
    variants = [machine.variant(name, 16 * TICK, calls_per_sample=1) for name in "ab"]
    settled, after = iter(range(10, 10_000, 10)), iter([5.0, 500.0] * 5_000)
    profile = PROFILES["quick"]
    take_rounds(
        variants, profile, machine.clocks, random.Random(0), control=after.__next__, settle=lambda: float(next(settled))
    )
    loops = sorted(variants[0].loops + variants[1].loops)
    rounds = len(variants[0].samples)
    assert loops == sorted(max(10.0 * (turn + 1), (5.0, 500.0)[turn % 2]) for turn in range(2 * rounds))


def test_energy_windows_settle_twice_a_second():
    machine, calls = Machine(), []
    machine.queued.clear()
    variant = machine.variant("a", 0.1, calls_per_sample=1)
    variant.calls_per_sample = 1

    class Counter:
        source = "double"

        def joules(self) -> float:
            return round(machine.now, 1)

        def watts(self) -> None:
            return None

    def sleep(seconds: float) -> None:
        machine.now += seconds

    take_windows(
        [variant], Counter(), machine.clocks, random.Random(0), sleep, settle=lambda: calls.append(machine.now)
    )
    assert 15 <= len(calls) <= 20  # a call takes 0.1 s, so a look follows five or six of them
