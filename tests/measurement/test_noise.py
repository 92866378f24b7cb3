"""The noise meter, on counters set by hand and on a second process that keeps a core busy."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from pytest import approx

from measurement import machine, noise
from measurement.checked import data_of, read
from measurement.machine import allotted_cpus


@pytest.fixture
def counters(monkeypatch):
    """The counters that the meter reads, as plain attributes."""
    now = SimpleNamespace(wall=100.0, own=10.0, ticks=(50.0, 1.0), switches=7, megahertz=2000.0)
    usage = SimpleNamespace(
        RUSAGE_SELF=resource.RUSAGE_SELF, getrusage=lambda who: SimpleNamespace(ru_nivcsw=now.switches)
    )
    clock = SimpleNamespace(perf_counter=lambda: now.wall, process_time=lambda: now.own)
    monkeypatch.setattr(noise, "time", clock)
    monkeypatch.setattr(noise, "resource", usage)
    monkeypatch.setattr(noise, "cpu_ticks", lambda cpus=None: now.ticks if cpus is None else now.ticks_of[tuple(cpus)])
    monkeypatch.setattr(noise, "cpu_megahertz", lambda: now.megahertz)
    return now


def test_shares_are_of_the_region_s_wall_time(counters):
    meter = noise.NoiseMeter()
    # In two seconds: 3 CPU-seconds of this process, 4 of the machine, 0.1 stolen, 10 switches, 10 % slower.
    counters.wall, counters.own, counters.ticks = 102.0, 13.0, (54.0, 1.1)
    counters.switches, counters.megahertz = 17, 1800.0
    seen = meter.stop()
    assert seen.seconds == 2.0
    assert seen.other_load_cores == approx(0.5)
    assert seen.steal_share == approx(0.05)
    assert seen.involuntary_switches_per_s == 5.0
    assert seen.frequency_change == approx(0.1)


def test_own_work_is_not_other_load(counters):
    meter = noise.NoiseMeter()
    counters.wall, counters.own, counters.ticks = 102.0, 12.005, (52.0, 1.0)  # ticks are coarser than the CPU clock
    assert meter.stop().other_load_cores == 0.0


def test_a_process_with_cpus_of_its_own_sees_the_load_on_them_alone(counters):
    counters.ticks_of = {(2, 3): (5.0, 0.0)}
    meter = noise.NoiseMeter([2, 3])
    # In two seconds: 3 CPU-seconds of this process and of its CPUs, while the rest of the machine was busy as well.
    counters.wall, counters.own, counters.ticks = 102.0, 13.0, (90.0, 1.0)
    counters.ticks_of = {(2, 3): (8.5, 0.0)}
    assert meter.stop().other_load_cores == approx(0.25)


def test_what_the_system_does_not_tell_is_missing(counters):
    counters.ticks = counters.megahertz = None
    meter = noise.NoiseMeter()
    counters.wall = 101.0
    seen = meter.stop()
    assert (seen.other_load_cores, seen.steal_share, seen.frequency_change) == (None, None, None)


def test_noise_survives_json(counters):
    seen = noise.NoiseMeter().stop()
    assert read(noise.Noise, data_of(seen)) == seen


def test_ticks_are_read_from_proc_stat(monkeypatch):
    # user nice system idle iowait irq softirq steal guest guest_nice, in hundredths of a second
    monkeypatch.setattr(machine, "_read", lambda path: "cpu  100 20 30 4000 500 6 4 50 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
    monkeypatch.setattr(machine.os, "sysconf", lambda name: 100)
    assert machine.cpu_ticks() == approx((1.6, 0.5))
    monkeypatch.setattr(machine, "_read", lambda path: "")
    assert machine.cpu_ticks() is None


def test_frequency_is_the_mean_over_the_cpus(monkeypatch):
    monkeypatch.setattr(machine, "_read", lambda path: "model name\t: x\ncpu MHz\t\t: 1000.0\ncpu MHz\t\t: 3000.0\n")
    assert machine.cpu_megahertz() == 2000.0


SPIN = "import time\nwhile time.process_time() < 0.5: sum(range(10_000))"


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="needs Linux's counters")
def test_another_process_is_other_load():
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    meter = noise.NoiseMeter()
    subprocess.run([sys.executable, "-c", SPIN], check=True)
    seen = meter.stop()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    child = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    # In CPU-seconds, whatever else ran and however long it took. Ticks are coarse, hence the third; what a hypervisor
    # took away meanwhile may be in a process's time as well.
    assert child >= 0.5
    assert (seen.other_load_cores + seen.steal_share) * seen.seconds > child / 3


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="needs Linux's counters")
def test_the_work_of_descendants_is_a_process_s_own():
    """Of those that ended and were waited for, by whichever of them, and of those that live."""
    run = f"subprocess.run([sys.executable, '-c', {SPIN!r}], check=True)"
    inner = f"import subprocess, sys\n{run}\nprint('done', flush=True)\ninput()"
    meter = noise.NoiseMeter(whole=True)
    subprocess.run([sys.executable, "-c", SPIN], check=True)
    ended = meter._read()[1] - meter._start[1]
    child = subprocess.Popen([sys.executable, "-c", inner], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout.readline() == "done\n"
        assert child.pid in machine.descendants()
        both = meter._read()[1] - meter._start[1]
        child.communicate("\n")
    assert ended >= 0.5 and both - ended >= 0.45  # counted in ticks
    assert child.pid not in machine.descendants()


def test_only_a_part_of_the_machine_s_cpus_is_an_allotment(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3})
    assert allotted_cpus() is None
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 1})
    assert allotted_cpus() == [1, 3]
