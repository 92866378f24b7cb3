"""State of an NVIDIA GPU while samples were taken: clocks, power, temperature, and reasons for a reduced clock.

The readings come from the driver's own library (NVML), part of every driver; each takes microseconds. Sources: NVIDIA's
NVML API reference, "Device Queries" and "Clocks Event Reasons".
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from dataclasses import dataclass, replace
from statistics import median

POWER_CAP = 0x04  # normal under long compute-bound calls; the other reasons are disturbances
# Reasons for a reduced clock; idleness and user settings are no disturbance.
THROTTLES = {
    POWER_CAP: "power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
_GRAPHICS_SM, _MEMORY = 1, 2  # nvmlClockType_t


@dataclass(frozen=True)
class GpuState:
    """One GPU over one timed region. None if the driver does not report a value."""

    sm_mhz: float | None  # median of the readings
    memory_mhz: float | None
    power_w: float | None
    temperature_c: float | None  # the highest
    power_capped_share: float | None  # of the readings in which the power cap held the clock back
    throttled_share: float | None  # in which heat, the hardware or the power brake did
    throttles: str | None  # the reasons, separated by ';'
    uuid: str | None = None  # a short hash of it, the same for the same card


class GpuMeter:
    """Readings of the GPU that a process calls `gpu:<index>`; without a driver it stays empty."""

    def __init__(self, index: int):
        self.nvml, self.handle = _open(index)
        self._readings: list[tuple] = []

    def read(self) -> None:
        """Take a reading; call it outside of timed regions."""
        if self.handle is None:
            return
        clock, device = self.nvml.nvmlDeviceGetClockInfo, self.handle
        reasons = ctypes.c_ulonglong()
        failed = self.nvml.nvmlDeviceGetCurrentClocksThrottleReasons(device, ctypes.byref(reasons))
        self._readings.append(
            (
                _value(clock, device, _GRAPHICS_SM),
                _value(clock, device, _MEMORY),
                _value(self.nvml.nvmlDeviceGetPowerUsage, device),
                _value(self.nvml.nvmlDeviceGetTemperature, device, 0),
                None if failed else reasons.value,
            )
        )

    def state(self) -> GpuState | None:
        """Return the state over all readings; None without any."""
        state = summarised(self._readings)
        return state and replace(state, uuid=short(_uuid(self.nvml, self.handle)))


def summarised(readings: list[tuple]) -> GpuState | None:
    """Return the state over readings of (SM MHz, memory MHz, milliwatts, degrees, reasons); None without readings."""
    if not readings:
        return None
    sm, memory, power, temperature, reasons = ([v for v in column if v is not None] for column in zip(*readings))  # noqa: B905
    capped = [bits for bits in reasons if bits & POWER_CAP]
    held = [bits for bits in reasons if any(bits & reason for reason in THROTTLES if reason != POWER_CAP)]
    names = [name for bit, name in THROTTLES.items() if any(bits & bit for bits in reasons)]
    return GpuState(
        sm_mhz=median(sm) if sm else None,
        memory_mhz=median(memory) if memory else None,
        power_w=median(power) / 1e3 if power else None,
        temperature_c=max(temperature) if temperature else None,
        power_capped_share=len(capped) / len(reasons) if reasons else None,
        throttled_share=len(held) / len(reasons) if reasons else None,
        throttles=";".join(names) or None,
    )


def short(uuid: str | None) -> str | None:
    """Return a short hash of a GPU's UUID: result folders are shared, and the UUID identifies the card."""
    return hashlib.sha256(uuid.encode()).hexdigest()[:12] if uuid else None


def _uuid(nvml, handle) -> str | None:
    text = ctypes.create_string_buffer(96)  # NVML_DEVICE_UUID_V2_BUFFER_SIZE
    return None if nvml.nvmlDeviceGetUUID(handle, text, len(text)) else text.value.decode("ascii", "replace")


def _value(function, *arguments) -> int | None:
    value = ctypes.c_uint()
    return None if function(*arguments, ctypes.byref(value)) else value.value


def _open(index: int):
    """Return the library and the handle of GPU `index` by CUDA_VISIBLE_DEVICES; (None, None) without a driver."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None, None
    handle, name = ctypes.c_void_p(), visible(index, os.environ.get("CUDA_VISIBLE_DEVICES"))
    if nvml.nvmlInit_v2():
        return None, None
    if name.isdigit():
        failed = nvml.nvmlDeviceGetHandleByIndex_v2(int(name), ctypes.byref(handle))
    else:
        failed = nvml.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle))
    return (nvml, None) if failed else (nvml, handle)


def visible(index: int, variable: str | None) -> str:
    """Return the number or UUID of the GPU that a process with this CUDA_VISIBLE_DEVICES calls `index`."""
    names = [name.strip() for name in (variable or "").split(",") if name.strip()]
    return names[index] if index < len(names) else str(index)
