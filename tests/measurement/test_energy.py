"""Energy per call: windows on a planted counter, the counters of processors and GPUs, columns and lines."""

from __future__ import annotations

import ctypes
import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from doubles.clock import Machine

from analysis import modes
from analysis.answers import by_setting
from analysis.points import Points
from measurement import checked, energy, gpu
from measurement.energy import Energy, Nvml, Rapl, Unmetered, integrated, take_windows
from records import energy as columns_of
from records.cell_result import CellResult, Kept
from records.record import SCHEMA_VERSION
from records.shapes import SampleLine
from reports import answers

LOOP = 0.0005  # seconds of the control loop at full speed


class Planted:
    """A counter that changes every tenth of a second of a machine whose power is that of the mode that ran."""

    source = "planted"

    def __init__(
        self, machine: Machine, watts: dict[str, float], idle: float = 50.0, off: float = 1.0, pause_s: float = 0.0
    ):
        self.machine, self.power, self.idle, self.off, self.pause_s = machine, watts, idle, off, pause_s
        self.shown, self.total, self.seen, self.mode = 0.0, 0.0, 0.0, ""

    def _follow(self) -> None:
        watts = self.power.get(self.mode, self.idle)
        before, self.seen = self.seen, self.machine.now
        if int(before * 10) != int(self.seen * 10):  # the last change lies within
            changed = int(self.seen * 10) / 10
            self.shown = self.total + (changed - before) * watts
        self.total += (self.seen - before) * watts

    def joules(self) -> float:
        self.read()
        return self.shown

    def watts(self) -> float:
        return self.off * self.power.get(self.read(), self.idle)

    def read(self) -> str:
        """Return the mode that ran last; reading takes time in which none runs."""
        self.mode = last = next((what for event, what in reversed(self.machine.log) if event == "call"), "")
        self._follow()
        self.mode = ""
        self.machine.now += self.pause_s
        self._follow()
        return last


class Still(Planted):
    """A counter that never changes."""

    def joules(self) -> float:
        return 1.0


def taken(kind: type[Planted] = Planted, **how) -> dict[str, Energy]:
    """Windows of an eager mode of 20 ms at 100 W and a graph of 5 ms at 250 W."""
    machine = Machine()
    variants = [
        machine.variant(name, seconds, calls_per_sample=calls, synchronize_each_call=False)
        for name, seconds, calls in (("eager", 0.02, 2), ("graph", 0.005, 8))
    ]

    def sleep(seconds: float) -> None:
        machine.now += seconds

    counter = kind(machine, {"eager": 100.0, "graph": 250.0}, **how)

    def control() -> tuple[float]:
        counter.read()
        return (LOOP,)

    return take_windows(variants, counter, machine.clocks, random.Random(1), sleep, control=control)


def test_a_window_holds_the_energy_of_its_mode_alone():
    found = taken()
    for name, joules, watts in (("eager", 2.0, 100), ("graph", 1.25, 250)):
        of_mode = found[name]
        assert len(of_mode.joules) == 1
        assert of_mode.seconds[0] > energy.WINDOW_SECONDS - 0.5
        assert of_mode.joules[0] / of_mode.calls[0] == pytest.approx(joules, rel=0.01)
        assert of_mode.joules[0] / of_mode.seconds[0] == pytest.approx(watts, rel=0.01)
        assert of_mode.integrated[0] / of_mode.joules[0] == pytest.approx(1, rel=0.01)
    assert found["eager"].idle_w == pytest.approx(50, rel=0.01)


def test_readings_between_calls_are_no_part_of_a_calls_energy(cell, report):
    found = taken(pause_s=0.005)
    for mode, joules, watts in (("eager", 2.0, 100), ("graph", 1.25, 250)):
        of_mode = found[mode]
        assert of_mode.between_s[0] > 0.02 * of_mode.seconds[0]
        loops = {"host_loop_s": (LOOP,) * 10, "host_s": 0.001, "device_s": 0.004}
        checked = CellResult(cell(), reports=[report(samples=(0.02,) * 10, energy=of_mode, **loops)])
        (call,) = columns_of.calls(checked)[0, ""]
        assert columns_of.integrated_ratio(checked) == pytest.approx(1, rel=0.01)
        assert (call.joules, call.watts) == (pytest.approx(joules, rel=0.005), pytest.approx(watts, rel=0.005))


def test_a_cpu_works_between_calls_too(cell, report):
    taken_there = Energy(Rapl.source, (100.0,), (1.25,), (100.0,), between_s=(0.25,), idle_w=10.0)
    for source, joules in ((Rapl.source, 0.8), ("NVML", 0.975)):
        result = CellResult(cell(), reports=[report(energy=replace(taken_there, source=source))])
        assert columns_of.calls(result)[0, ""][0].joules == pytest.approx(joules)


def test_a_counter_that_stands_still_is_no_energy_of_zero():
    with pytest.raises(Unmetered, match="stood still"):
        taken(Still)


def test_power_is_integrated_by_trapezoids():
    assert integrated([(0.0, 100.0), (1.0, 200.0), (3.0, 200.0)]) == 150 + 400


def rapl(root: Path, joules: float) -> None:
    """Write the counters of two packages, each with a share that nothing else counts, and of the whole system."""
    parts = {"intel-rapl:0": "package-0", "intel-rapl:1": "package-1", "intel-rapl:2": "psys"}
    parts |= {"intel-rapl-mmio:0": "package-0"}  # the same package by another interface
    for place, name in parts.items():
        folder = root / place
        folder.mkdir(exist_ok=True)
        (folder / "name").write_text(f"{name}\n")
        (folder / "max_energy_range_uj").write_text("10000000\n")
        (folder / "energy_uj").write_text(f"{int(joules * 1e6) % 10_000_000}\n")


def test_packages_are_added_up_and_a_counter_that_begins_again_goes_on(tmp_path):
    rapl(tmp_path, 9.0)
    counter = Rapl(tmp_path)
    assert counter.joules() == 0
    rapl(tmp_path, 12.0)
    assert counter.joules() == pytest.approx(6)
    rapl(tmp_path, 13.0)
    assert counter.joules() == pytest.approx(8)


def test_a_machine_without_counters_says_so(tmp_path, monkeypatch):
    with pytest.raises(Unmetered, match="energy_uj"):
        Rapl(tmp_path)
    monkeypatch.setattr(gpu, "_open", lambda index: (None, None))
    with pytest.raises(Unmetered, match="energy counter"):
        Nvml(0)


class Driver:
    """NVML of a GPU that used 12.5 J at 350 W."""

    def nvmlDeviceGetTotalEnergyConsumption(self, handle, total):
        ctypes.cast(total, ctypes.POINTER(ctypes.c_ulonglong))[0] = 12_500
        return 0

    def nvmlDeviceGetFieldValues(self, handle, count, values):
        asked = ctypes.cast(values, ctypes.POINTER(energy._FieldValue))[0]
        assert (asked.field, count) == (186, 1)
        asked.value, asked.failed = 350_000, 0
        return 0


def test_a_gpu_s_counter_is_in_millijoules_and_its_power_in_milliwatts(monkeypatch):
    monkeypatch.setattr(gpu, "_open", lambda index: (Driver(), 1))
    counter = Nvml(0)
    assert (counter.joules(), counter.watts()) == (12.5, 350.0)
    assert ctypes.sizeof(energy._FieldValue) == 40  # as nvml.h has it


@pytest.fixture
def results(cell, report):
    """Eager mode and a graph in three processes, each with its windows."""

    def make(off: float = 1.0) -> tuple[CellResult, CellResult]:
        found = [taken(off=off) for _ in range(3)]
        eager, graph = (
            CellResult(cell(mode=mode), reports=[report(process=n, energy=one[key]) for n, one in enumerate(found)])
            for mode, key in (("eager", "eager"), ("inductor", "graph"))
        )
        return eager, graph

    return make


def test_columns_have_the_saving_and_the_power(results):
    eager, graph = results()
    row = columns_of.columns(graph, eager, False, 10)
    assert row["energy_j_per_call"] == pytest.approx(1.25, rel=0.01)
    assert row["energy_j_per_token"] == pytest.approx(0.125, rel=0.01)
    assert row["energy_saving_vs_eager"] == pytest.approx(1.6, rel=0.01)
    assert row["power_ratio_vs_eager"] == pytest.approx(2.5, rel=0.01)
    assert row["energy_ci_low"] <= row["energy_j_per_call"] <= row["energy_ci_high"]
    assert "energy_saving_vs_eager" not in columns_of.columns(eager, eager, True, None)


def windows_on_a_host(slow: float) -> dict[str, Energy]:
    """Windows where the core is slower by a factor: eager mode waits for it, with 4 ms of work at 300 W a call."""
    machine, seconds = Machine(), 0.02 * slow
    variants = [
        machine.variant(name, taken, calls_per_sample=2, synchronize_each_call=False)
        for name, taken in (("eager", seconds), ("graph", 0.005))
    ]

    def sleep(seconds: float) -> None:
        machine.now += seconds

    def control() -> tuple[float]:
        return (slow * LOOP,)

    counter = Planted(machine, {"eager": (0.004 * 250 + seconds * 50) / seconds, "graph": 250.0})
    return take_windows(variants, counter, machine.clocks, random.Random(1), sleep, control=control)


def test_energy_is_that_of_a_core_at_full_speed(cell, report):
    def reports(mode: str, seconds: float, host_s: float) -> CellResult:
        processes = [
            report(
                process=n,
                samples=[seconds * (slow if mode == "eager" else 1)] * 10,
                host_loop_s=(slow * LOOP,) * 10,
                host_s=host_s * slow,
                device_s=0.004,
                energy=windows_on_a_host(at_window)["eager" if mode == "eager" else "graph"],
            )
            for n, (slow, at_window) in enumerate([(1.0, 2.0), (1.1, 1.0), (1.2, 1.5)])
        ]
        return CellResult(cell(mode=mode), reports=processes)

    eager, graph = reports("eager", 0.02, 0.02), reports("inductor", 0.005, 0.001)
    assert [round(one.host_loop_s[0] / LOOP, 6) for one in (r.energy for r in eager.reports)] == [2.0, 1.0, 1.5]
    row = columns_of.columns(eager, None, True, None)
    assert row["energy_ci_low"] == pytest.approx(2.0, rel=0.02)  # 4 ms of work and 20 ms of idle power
    assert row["energy_ci_high"] == pytest.approx(2.0, rel=0.02)
    assert row["power_w"] == pytest.approx(100, rel=0.02)
    row = columns_of.columns(graph, eager, False, None)
    assert row["energy_j_per_call"] == pytest.approx(1.25, rel=0.01)
    assert (row["energy_saving_ci_low"], row["energy_saving_ci_high"]) == pytest.approx((1.6, 1.6), rel=0.03)


def test_a_wait_draws_no_more_than_the_windows_mean_power(cell, report):
    energy = Energy(
        "planted", (90.0,), (2.0,), (100.0,), host_loop_s=(2 * LOOP,), idle_w=50.0
    )  # calls of 20 ms at 45 W
    loops = {"host_loop_s": (LOOP,) * 10, "host_s": 0.01, "device_s": 0.0001}
    for windows, call in (
        (energy, (pytest.approx(0.45), pytest.approx(0.01))),
        (replace(energy, host_loop_s=()), (0.9, 0.02)),
    ):
        result = CellResult(cell(), reports=[report(samples=(0.01,) * 10, energy=windows, **loops)])
        assert columns_of.calls(result) == {(0, ""): [call]}


def test_samples_hold_the_windows(cell, report):
    kept = Kept("", report=report(energy=taken()["eager"]))
    (line,) = kept.samples
    read = checked.read(SampleLine, json.loads(json.dumps(line)))
    assert read["energy"] == kept.report.energy
    assert "energy" not in Kept("", report=report()).samples[0]


def test_a_counter_off_its_integrated_power_is_flagged(results):
    assert not columns_of.is_off(results()[1])
    assert columns_of.is_off(results(off=1.2)[1])


def test_energy_that_was_not_asked_for_has_no_columns_and_an_unreadable_one_its_reason(cell, report):
    plain = CellResult(cell(), reports=[report()])
    assert columns_of.columns(plain, None, True, None) == {}
    without = CellResult(cell(), reports=[report(energy=Energy(problem="no counter"))])
    assert columns_of.columns(without, None, True, None) == {"energy_source": "unsupported: no counter"}


def test_a_line_says_joules_saving_and_power(results, record):
    eager, graph = results()
    shared = {"framework": "torch", "launches": 3, "interval_scope": "across processes"}
    records = [
        record(**shared, mode="eager", **columns_of.columns(eager, None, True, None)),
        record(**shared, mode="inductor", **columns_of.columns(graph, eager, False, None)),
    ]
    ((answer,),) = by_setting(Points(records), modes.labels())
    first, second = answers.energy(answer)
    assert first.startswith("Energy (planted): torch eager 2 J per call") and first.endswith("W (idle: 50 W).")
    assert "torch inductor 1.25 J per call" in second and "eager uses 1.60×" in second and "power 2.5" in second
    slowed = {"flags": "host_slowed", "schema_version": SCHEMA_VERSION, "latency_slowed": True}
    ((answer,),) = by_setting(Points([one | slowed for one in records]), modes.labels())
    assert all(line.endswith(", host slowed.") and "eager uses" not in line for line in answers.energy(answer))
    doubted = {"flags": "energy_unchecked", "schema_version": SCHEMA_VERSION}
    ((answer,),) = by_setting(Points([one | doubted for one in records]), modes.labels())
    assert all("unchecked" in line and "eager uses" not in line for line in answers.energy(answer))
