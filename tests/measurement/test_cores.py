"""Threads move to CPUs at full speed, on a fake host whose CPUs have a speed each."""

from __future__ import annotations

import os
import random
import threading

import pytest
from doubles.clock import TICK, Machine

from measurement.cores import FEWEST, KNOWN, MOST_TRIED, Cores, own_threads
from measurement.energy import take_windows
from measurement.profiles import PROFILES
from measurement.sampling import take_rounds

FAST, SLOW = 1.0, 2.0
MAIN = threading.get_native_id()
AUTOGRAD, IDLE, BOUND = -7, -8, -9  # threads: one that works, one that does not, and one that a library bound


class Host:
    """CPUs of which each takes `seconds` for a loop; a thread stays on its CPU while it may, else takes the first."""

    def __init__(self, seconds: list[float]):
        self.seconds, self.now, self.tried = seconds, 0.0, []
        self.cpus = set(range(len(seconds)))
        self.allowed = {thread: self.cpus for thread in (MAIN, AUTOGRAD, IDLE)} | {BOUND: {0}}
        self.at = dict.fromkeys(self.allowed, 0)
        self.work = dict.fromkeys(self.allowed, 0.0)
        self.refused: set[int] = set()  # threads that have no affinity any more
        self.cores = Cores(self.read, sorted(self.cpus), self.assign, self.allowed.get, self.used)
        for _ in range(KNOWN):  # the speed is known
            self.cores._loops.append(FAST)

    def read(self) -> float:
        """Read the clock; a loop took place since the reading before."""
        self.now += self.seconds[self.at[MAIN]]
        return self.now

    def used(self) -> dict[int, float]:
        """Return CPU seconds: two threads work all the time."""
        return {thread: self.now if thread in (MAIN, AUTOGRAD, BOUND) else 0.0 for thread in self.allowed}

    def assign(self, thread: int, cpus) -> None:
        if thread in self.refused:
            raise OSError(22, "Invalid argument")
        self.allowed[thread] = set(cpus)
        if self.at[thread] not in cpus:
            self.at[thread] = sorted(cpus)[0]
        if len(cpus) == 1:
            self.tried += cpus


def test_threads_that_work_leave_a_slow_cpu_and_return_afterwards():
    machine = Host([SLOW] * 8 + [FAST] * 8)
    assert machine.cores.settle() == FAST
    assert machine.at[MAIN] >= 8 and machine.at[AUTOGRAD] >= 8
    assert machine.allowed[AUTOGRAD] == machine.allowed[MAIN] <= set(range(8, 16))
    assert len(machine.allowed[MAIN]) == FEWEST
    assert machine.allowed[IDLE] == machine.cpus and machine.allowed[BOUND] == {0}
    machine.allowed[-10] = set(machine.allowed[MAIN])  # a thread that started meanwhile
    machine.at[-10] = 8
    machine.cores.release_cpus()
    assert {thread: machine.allowed[thread] for thread in (MAIN, AUTOGRAD, IDLE, -10)} == dict.fromkeys(
        (MAIN, AUTOGRAD, IDLE, -10), machine.cpus
    )
    assert machine.allowed[BOUND] == {0}


def test_a_fast_cpu_is_kept():
    machine = Host([FAST] * 8)
    for _ in range(5):
        assert machine.cores.settle() == FAST
    assert not machine.tried


def test_the_first_time_cpus_are_compared():
    machine = Host([SLOW] * 3 + [FAST] * 9)
    machine.cores._loops.clear()
    assert machine.cores.settle() == FAST and machine.at[MAIN] >= 3


def test_few_others_are_tried_and_the_next_time_different_ones():
    machine = Host([SLOW] + [FAST] * 15)
    machine.cores.settle()
    first = set(machine.tried)
    assert len(first) <= FEWEST + 1
    machine.tried.clear()
    for cpu in first:
        machine.seconds[cpu] = SLOW
    assert machine.cores.settle() == FAST
    assert not first & set(machine.tried)


def test_a_search_has_an_end_on_a_large_slow_host():
    machine = Host([SLOW] * 200)
    assert machine.cores.settle() == SLOW
    assert len(set(machine.tried)) == MOST_TRIED


def test_on_a_host_that_is_slow_everywhere_the_least_slow_cpu_is_used():
    machine = Host([4.0, 4.0, 3.0, 4.0, 4.0])
    assert machine.cores.settle() == 3.0 and machine.at[MAIN] == 2


def test_slow_cpus_do_not_fill_up_the_number():
    machine = Host([SLOW] * 5 + [FAST] * 3 + [SLOW] * 4)
    machine.cores.settle()
    assert machine.allowed[MAIN] == {5, 6, 7}


@pytest.mark.parametrize("workers", [6, 20])
def test_a_model_that_computes_on_the_host_keeps_a_cpu_for_each_thread(workers):
    """Twelve CPUs: with as many threads or more nothing moves."""
    machine = Host([SLOW] + [FAST] * 11)
    threads = range(-100, -100 - workers, -1)
    for thread in threads:
        machine.allowed[thread], machine.at[thread] = machine.cpus, 0
    usual = machine.cores._threads
    machine.cores._threads = lambda: usual() | dict.fromkeys(threads, machine.now)
    machine.cores.settle()
    moved = [thread for thread in threads if machine.allowed[thread] != machine.cpus]
    if workers == 20:
        assert not machine.tried and not moved
    else:
        assert len(moved) == 6 and len(machine.allowed[MAIN]) == 9  # with three others that work


def test_where_the_system_refuses_threads_get_all_cpus_back_and_stay():
    machine = Host([SLOW] + [FAST] * 9)
    machine.refused = {AUTOGRAD}
    machine.cores.settle()
    assert not machine.cores.movable
    assert machine.allowed[MAIN] == machine.cpus
    machine.tried.clear()
    machine.cores.settle()
    machine.cores.release_cpus()
    assert not machine.tried


@pytest.mark.parametrize("cpus", [[], [0]])
def test_without_a_choice_nothing_is_tried(cpus):
    machine = Host([SLOW, FAST])
    machine.cores._cpus = cpus
    assert not machine.cores.movable
    assert machine.cores.settle() == SLOW
    assert not machine.tried


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_the_system_s_threads_move_and_return():
    """Real threads and CPUs; the clock says that the loop is slow on the first CPU."""
    before, seen, done = os.sched_getaffinity(0), {}, threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    now = [0.0]

    def clock() -> float:
        now[0] += 1.0 if os.sched_getaffinity(0) == {max(before)} else 2.0
        return now[0]

    try:
        used = {threading.get_native_id(): 5.0, other.native_id: 5.0}
        mover = Cores(clock, sorted(before), threads=lambda: {thread: now[0] for thread in used})
        mover._loops.extend([1.0] * KNOWN)
        mover._working = lambda: {threading.get_native_id()}
        mover.settle()
        seen = {thread: os.sched_getaffinity(thread) for thread in used}
        mover.release_cpus()
        assert os.sched_getaffinity(0) == os.sched_getaffinity(other.native_id) == before
        assert {threading.get_native_id(), other.native_id} <= set(own_threads())
    finally:
        done.set()
        other.join()
        os.sched_setaffinity(0, before)
    assert seen == {threading.get_native_id(): {max(before)}, other.native_id: before}


def test_a_turn_begins_where_the_thread_settled():
    machine = Machine()
    variants = [machine.variant(name, 16 * TICK, calls_per_sample=1) for name in "ab"]
    settled, after = iter(range(10, 100_000, 10)), iter([(5.0,), (500.0,)] * 5_000)
    take_rounds(
        variants, PROFILES["quick"], machine.clocks, random.Random(0),
        control=after.__next__, settle=lambda: (float(next(settled)),),
    )  # fmt: skip
    loops = sorted(variants[0].loops + variants[1].loops)
    rounds = len(variants[0].samples)
    assert loops == sorted(max(10.0 * (turn + 1), (5.0, 500.0)[turn % 2]) for turn in range(2 * rounds))


def test_energy_windows_settle_several_times_a_second():
    machine, calls = Machine(), []
    variant = machine.variant("a", 0.1, calls_per_sample=1)

    class Counter:
        source = "double"

        def joules(self) -> float:
            return round(machine.now, 1)

        def watts(self) -> None:
            return None

    def sleep(seconds: float) -> None:
        machine.now += seconds

    take_windows(
        [variant],
        Counter(),
        machine.clocks,
        random.Random(0),
        sleep,
        settle=lambda: [calls.append(machine.now) or 0.0005],
    )
    assert 33 <= len(calls) <= 36  # every 0.3 s, after three calls
