"""Energy of calls: counter differences over windows of one mode, bounded by synchronization; modes in random order.

On a GPU the counter is the driver's for the whole card, in mJ (NVML, nvmlDeviceGetTotalEnergyConsumption). The driver's
instant power (NVML_FI_DEV_POWER_INSTANT), integrated over the window, checks it. On a CPU it is the packages' (RAPL,
Documentation/power/powercap in the Linux kernel), if the user may read it.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import harmonic_mean
from typing import Protocol

from measurement.checked import Duration, Positive
from measurement.gpu import GpuMeter
from measurement.sampling import Clocks, Control, Variant, no_garbage_collection, time_calls

WINDOW_SECONDS = 10.0
IDLE_SECONDS = 3.0
READ_SECONDS = 0.02  # between readings of an idle counter
LOOK_SECONDS = 1.0  # between looks at the host's speed, which take 2 ms, or 20 at most if it is slow
STILL_SECONDS = 5.0  # a counter unchanged for so long under calls is broken
POWERCAP = Path("/sys/class/powercap")
NO_RAPL = "no readable RAPL counter below /sys/class/powercap: let this user read energy_uj, or measure on a GPU"
NO_NVML = "the driver has no energy counter for this GPU"


class Unmetered(Exception):
    """Energy cannot be read here; the message is a clause with the reason."""


class Counter(Protocol):
    """A running total of energy, and the current power if known."""

    source: str

    def joules(self) -> float:
        """Return the total in J."""

    def watts(self) -> float | None:
        """Return the power in W; None if only the total is known."""


@dataclass(frozen=True)
class Energy:
    """Energy of one mode's windows, one value per window: J, s, calls, and J by integrated power if known.

    `host_loop_s` has the seconds of the host's loop during each window: their harmonic mean, since calls per second are
    proportional to the core's speed. `idle_w` is the power while no call runs. `problem` explains missing windows.
    """

    source: str = ""
    joules: tuple[Positive, ...] = ()
    seconds: tuple[Positive, ...] = ()
    calls: tuple[Positive, ...] = ()
    integrated: tuple[Positive, ...] = ()
    host_loop_s: tuple[Positive, ...] = ()
    idle_w: Duration | None = None
    problem: str = ""


# J, s, calls, J by integrated power if known, and seconds of the host's loop if it was timed
Window = tuple[float, float, float, float | None, float | None]


def counter(device: str) -> Counter:
    """Return the counter of a device. Raises Unmetered."""
    return Rapl() if device == "cpu" else Nvml(int(device.partition(":")[2]))


def take_windows(
    variants: Sequence[Variant],
    meter: Counter,
    clocks: Clocks,
    order: random.Random,
    sleep: Callable[[float], None],
    on_window: Callable[[Variant], None] = lambda variant: None,
    control: Control = lambda: (),
    settle: Control = lambda: (),
) -> dict[str, Energy]:
    """Return the energy of one window by variant name.

    Once a second `control` times the host's loop; then `settle`, which also returns its seconds, may move this thread
    to a faster CPU.
    Raises Unmetered if calls need new inputs or the counter stops.
    """
    if any(variant.get_ready for variant in variants):
        raise Unmetered("each call needs new inputs, whose making the counter cannot subtract")
    idle = _idle_watts(meter, clocks, sleep)
    found: dict[str, Energy] = {}
    with no_garbage_collection():
        for variant in order.sample(variants, len(variants)):
            on_window(variant)
            joules, seconds, calls, *known = _window(variant, meter, clocks, lambda: (*control(), *settle()))
            by_power, loops = (() if value is None else (value,) for value in known)
            found[variant.name] = Energy(meter.source, (joules,), (seconds,), (calls,), by_power, loops, idle)
    return found


def _window(variant: Variant, meter: Counter, clocks: Clocks, look: Control) -> Window:
    """Return a window from the counter's first change to its last: it has no information between changes."""
    wall, count, loops = clocks.wall, variant.calls_per_sample, list(look())
    time_calls(variant, count, clocks)
    start, calls, last = wall(), 0, meter.joules()
    changed = looked = start
    marks: list[tuple[float, float, int]] = []  # seconds, joules and calls at each change
    powers: list[tuple[float, float]] = []
    while wall() - start < WINDOW_SECONDS or len(marks) < 2:
        if wall() - looked >= LOOK_SECONDS:
            loops += look()
            looked = wall()
        time_calls(variant, count, clocks)
        calls += count
        now, joules, watts = wall(), meter.joules(), meter.watts()
        if watts is not None:
            powers.append((now, watts))
        if joules != last:
            marks.append((now, joules, calls))
            last, changed = joules, now
        elif now - changed > STILL_SECONDS:
            raise Unmetered(f"the counter ({meter.source}) stood still for {now - changed:.0f} s of calls")
    (first_s, first_j, first_calls), (last_s, last_j, last_calls) = marks[0], marks[-1]
    within = [(moment, watts) for moment, watts in powers if first_s <= moment <= last_s]
    by_power = integrated(within) if len(within) > 1 else None
    loop_s = harmonic_mean(loops) if loops else None
    return last_j - first_j, last_s - first_s, float(last_calls - first_calls), by_power, loop_s


def integrated(powers: Sequence[tuple[float, float]]) -> float:
    """Return the energy in J from (s, W) pairs, by the trapezoidal rule."""
    return sum(
        (after - before) * (first + second) / 2 for (before, first), (after, second) in itertools.pairwise(powers)
    )


def _idle_watts(meter: Counter, clocks: Clocks, sleep: Callable[[float], None]) -> float | None:
    """Return the power in W while no call runs, from the counter's changes; None for fewer than two."""
    start, last = clocks.wall(), meter.joules()
    marks: list[tuple[float, float]] = []
    while clocks.wall() - start < IDLE_SECONDS:
        sleep(READ_SECONDS)
        now, joules = clocks.wall(), meter.joules()
        if joules != last:
            marks.append((now, joules))
            last = joules
    if len(marks) < 2:
        return None
    return (marks[-1][1] - marks[0][1]) / (marks[-1][0] - marks[0][0])


class Rapl:
    """The sum of the processor packages' counters, each of which wraps around at its range."""

    source = "RAPL, processor packages"

    def __init__(self, root: Path = POWERCAP):
        self._files = [folder / "energy_uj" for folder in _packages(root).values()]
        if not self._files:
            raise Unmetered(NO_RAPL)
        try:
            self._ranges = [int((path.parent / "max_energy_range_uj").read_text()) for path in self._files]
            self._last = [int(path.read_text()) for path in self._files]
        except (OSError, ValueError):
            raise Unmetered(NO_RAPL) from None
        self._total = 0

    def joules(self) -> float:
        """Return the energy since the counter was opened, in J."""
        now = [int(path.read_text()) for path in self._files]
        self._total += sum(
            (after - before) % most for before, after, most in zip(self._last, now, self._ranges, strict=True)
        )
        self._last = now
        return self._total / 1e6

    def watts(self) -> None:
        return None


def _packages(root: Path) -> dict[str, Path]:
    """Return each package's folder by name; a duplicate from another interface (intel-rapl-mmio) is ignored."""
    found: dict[str, Path] = {}
    for folder in sorted(root.glob("*:*"), key=lambda path: ("mmio" in path.name, path.name)):
        with contextlib.suppress(OSError):
            name = (folder / "name").read_text().strip()
            if name.startswith("package"):
                found.setdefault(name, folder)
    return found


class _FieldValue(ctypes.Structure):
    """nvmlFieldValue_t; the value is a union of eight bytes."""

    _fields_ = (
        ("field", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency_us", ctypes.c_longlong),
        ("kind", ctypes.c_int),
        ("failed", ctypes.c_int),
        ("value", ctypes.c_ulonglong),
    )


POWER_INSTANT = 186  # NVML_FI_DEV_POWER_INSTANT, in mW, an unsigned int


class Nvml:
    """The driver's counter of one GPU, and its instant power."""

    source = "NVML, GPU alone"

    def __init__(self, index: int, meter: GpuMeter | None = None):
        self._meter = meter or GpuMeter(index)
        if self._meter.handle is None or self._joules() is None:
            raise Unmetered(NO_NVML)

    def joules(self) -> float:
        """Return the energy since the driver was loaded, in J."""
        joules = self._joules()
        if joules is None:
            raise Unmetered(NO_NVML)
        return joules

    def _joules(self) -> float | None:
        total = ctypes.c_ulonglong()
        failed = self._meter.nvml.nvmlDeviceGetTotalEnergyConsumption(self._meter.handle, ctypes.byref(total))
        return None if failed else total.value / 1e3

    def watts(self) -> float | None:
        """Return the current power in W; None if the driver does not report it."""
        asked = _FieldValue(field=POWER_INSTANT)
        failed = self._meter.nvml.nvmlDeviceGetFieldValues(self._meter.handle, 1, ctypes.byref(asked))
        return None if failed or asked.failed else (asked.value & 0xFFFFFFFF) / 1e3
