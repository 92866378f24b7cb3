"""What is read of a GPU, on readings as the driver gives them; figures beside the samples, on a fake device."""

from __future__ import annotations

import ctypes
import struct
from dataclasses import replace

import pytest

from frameworks.adapter import Meter, Step
from frameworks.paddle.fatbin import architectures
from measurement import gpu, machine
from measurement.checked import data_of
from measurement.gpu import GpuMeter, GpuState, summarised, visible
from measurement.sampling import Clocks
from records import judgement
from records.cell_result import CellResult
from worker import gpu_figures


def test_readings_are_summarised():
    state = summarised([(1980, 3201, 300_000, 40, 0), (1900, 3201, 500_000, 44, 0x4), (1700, 3201, 700_000, 47, 0x24)])
    assert (state.sm_mhz, state.memory_mhz, state.power_w, state.temperature_c) == (1900, 3201, 500, 47)
    assert (state.power_capped_share, state.throttled_share) == (pytest.approx(2 / 3), pytest.approx(1 / 3))
    assert state.throttles == "power cap;software thermal slowdown"


def test_idleness_and_settings_by_the_user_hold_nothing_back():
    state = summarised([(345, 3201, 80_000, 30, 0x1 | 0x2 | 0x10 | 0x100)])
    assert state.power_capped_share == state.throttled_share == 0
    assert state.throttles is None


def test_what_the_driver_does_not_tell_is_none():
    state = summarised([(None, None, None, None, None)])
    assert set(data_of(state).values()) == {None}
    assert summarised([]) is None


@pytest.mark.parametrize(
    ("index", "variable", "name"),
    [
        (0, None, "0"),
        (1, None, "1"),
        (0, "3,5", "3"),
        (1, "3, 5", "5"),
        (0, "GPU-abc,GPU-def", "GPU-abc"),
        (0, "", "0"),
    ],
)
def test_cuda_s_numbers_are_the_driver_s(index, variable, name):
    assert visible(index, variable) == name


def test_which_card_it_is_stands_in_the_state_and_the_machine_s_facts_as_a_short_hash(monkeypatch):
    class Driver:
        def nvmlDeviceGetUUID(self, handle, text, size):
            text.value = b"GPU-12345678-1234"
            return 0

        def __getattr__(self, name):
            return lambda *arguments: 0

    monkeypatch.setattr(gpu, "_open", lambda index: (Driver(), 1))
    meter = GpuMeter(0)
    meter.read()
    row = {"name": "NVIDIA H200", "uuid": "GPU-12345678-1234", "pci.bus_id": "1"}
    monkeypatch.setattr(machine, "gpus", lambda: (row,))
    (described,) = machine.facts()["gpus"]
    assert meter.state().uuid == described["uuid"] == gpu.short("GPU-12345678-1234")
    assert len(described["uuid"]) == 12 and "pci.bus_id" not in described and gpu.short(None) is None


def test_a_record_names_the_gpus_of_its_launches(cell, report):
    empty = GpuState(**dict.fromkeys(GpuState.__dataclass_fields__))
    reports = [report(noise={"gpu": replace(empty, uuid=uuid)}, process=n) for n, uuid in enumerate(("b1", "a2", "b1"))]
    assert judgement.noise(CellResult(cell(device="gpu:0"), reports=reports))["gpu_uuid"] == "a2;b1"
    assert judgement.noise(CellResult(cell(), reports=[report()]))["gpu_uuid"] is None


def test_without_a_driver_nothing_is_read(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    meter = GpuMeter(0)
    meter.read()
    assert meter.state() is None
    assert gpu._open(0) == (None, None)


class Device(Meter):
    """An adapter and its meter: weights of 100 that modes share, 7 for a mode's own, 20 more while it is called."""

    def __init__(self):
        self.used = self.peak = self.waits = self.shared = self.unused = self.left = 0

    def meter(self, cell):
        return self

    def allocated_bytes(self):
        return self.used + self.unused, self.used

    def shared_bytes(self):
        return self.shared

    def reset_peak(self):
        self.peak = self.used

    def peak_bytes(self):
        return max(self.left, self.peak), self.peak

    def synchronize(self, output):
        self.waits += 1

    def device_seconds(self, step, calls):
        return 0.5 * calls

    def step(self):
        self.peak = max(self.peak, self.used + 20)


def test_every_mode_has_its_own_peak_and_the_shared_weights(cell):
    device = Device()
    first = gpu_figures.PeakMemory(device, cell())
    device.used, device.shared = device.used + 100 + 7, 100
    assert first.of_a_call(device.step) == 100 + 7 + 20
    device.left = device.used + 25  # that the first mode's blocks keep in part unused
    device.unused = 25
    second = gpu_figures.PeakMemory(device, cell())
    device.used, device.unused = device.used + 7, 25 - 7
    assert second.of_a_call(device.step) == 100 + 7 + 20


def test_a_device_without_a_meter_has_no_such_figures(cell):
    device = Device()
    device.meter = lambda cell: None
    assert gpu_figures.PeakMemory(device, cell()).of_a_call(device.step) is None
    assert gpu_figures.device_seconds(device.meter(cell()), Step(device.step, [()]), 10.0) is None


@pytest.mark.parametrize(("seconds", "calls"), [(1e-6, 100), (0.0101, 20), (10.0, 5)])
def test_calls_beside_the_samples(cell, seconds, calls):
    device = Device()
    ticks = iter(range(1000))
    clocks = Clocks(wall=lambda: next(ticks) * seconds / 2)
    step = Step(device.step, [()])
    assert gpu_figures.submission(device, step, clocks) == pytest.approx((seconds, seconds / 2))
    assert device.waits == calls
    together = 1 if seconds > 1 else min(calls, 10)
    assert gpu_figures.device_seconds(device.meter(cell()), step, seconds) == 0.5 * together


def image(kind, architecture, payload):
    """An image of GPU code as it lies in a library: kind 1 is PTX, 2 a binary."""
    return struct.pack("<HHIQ12xI32x", kind, 0x101, 64, len(payload), architecture) + payload


def region(*images):
    """A fat binary that holds them."""
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, sum(map(len, images))) + b"".join(images)


def test_a_library_s_gpu_code_is_read_off_it(tmp_path):
    library = tmp_path / "lib.so"
    by_chance = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 1 << 60)
    first = region(image(2, 90, b"x" * 40), image(2, 61, by_chance + b"y" * 8), image(1, 80, b"z" * 16))
    library.write_bytes(b"code" * 10 + by_chance + first + b"more" * 5 + region(image(2, 120, b"")) + by_chance[:6])
    assert architectures(str(library)) == ["sm_61", "compute_80", "sm_90", "sm_120"]
    library.write_bytes(b"code" * 10)
    assert architectures(str(library)) == []
