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
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import harmonic_mean
from typing import NamedTuple, Protocol

from measurement.checked import Duration, Positive
from measurement.gpu import GpuMeter
from measurement.sampling import Clocks, Control, Variant, no_garbage_collection, time_calls

WINDOW_SECONDS = 10.0
IDLE_SECONDS = 3.0
READ_SECONDS = 0.02  # between readings of an idle counter
LOOK_SECONDS = 0.25  # between looks at the power and the host's speed: 2 to 7 ms, or 25 at most if the host is slow
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

    `between_s` are a window's seconds between calls: readings and looks, while the device waits. `host_loop_s` has the
    seconds of the host's loop during each window: their harmonic mean, since calls per second are proportional to the
    core's speed. `idle_w` is the power while no call runs. `problem` explains missing windows.
    """

    source: str = ""
    joules: tuple[Positive, ...] = ()
    seconds: tuple[Positive, ...] = ()
    calls: tuple[Positive, ...] = ()
    integrated: tuple[Positive, ...] = ()
    between_s: tuple[Duration, ...] = ()
    host_loop_s: tuple[Positive, ...] = ()
    idle_w: Duration | None = None
    problem: str = ""


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

    Every `LOOK_SECONDS` `control` times the host's loop; then `settle`, which also returns its seconds, may move this
    thread to a faster CPU. As in sampling, the slower of the loops before and after calls is theirs.
    Raises Unmetered if calls need new inputs or the counter stops.
    """
    if any(variant.get_ready for variant in variants):
        raise Unmetered("each call needs new inputs, whose making the counter cannot subtract")
    idle = _idle_watts(meter, clocks, sleep)
    found: dict[str, Energy] = {}
    with no_garbage_collection():
        for variant in order.sample(variants, len(variants)):
            on_window(variant)
            window = Window(variant, meter, clocks, control, settle)
            found[variant.name] = replace(window.energy(), source=meter.source, idle_w=idle)
    return found


class Mark(NamedTuple):
    """A change of the counter: its moment and new total, with the calls so far and the seconds within them."""

    moment: float
    joules: float
    calls: int
    within_s: float


class Window:
    """Calls of one mode between two changes of the counter, which has no information between changes."""

    def __init__(self, variant: Variant, meter: Counter, clocks: Clocks, control: Control, settle: Control):
        self._variant, self._meter, self._clocks = variant, meter, clocks
        self._control, self._settle = control, settle
        self._calls, self._within_s = 0, 0.0
        self._before: Sequence[float] = ()  # the loops after the last look
        self._loops: list[float] = []
        self._powers: list[tuple[float, float]] = []  # s, W

    def energy(self) -> Energy:
        """Return the energy of the window. Raises Unmetered."""
        self._look()
        first = self._change()
        start = looked = self._clocks.wall()
        while (now := self._clocks.wall()) - start < WINDOW_SECONDS:
            if now - looked >= LOOK_SECONDS:
                self._read_power(now)
                self._look()
                looked = now
            self._call()
        last = self._change()
        self._look()
        seconds, within_s = last.moment - first.moment, last.within_s - first.within_s
        return Energy(
            joules=(last.joules - first.joules,),
            seconds=(seconds,),
            calls=(float(last.calls - first.calls),),
            integrated=(integrated(self._powers),) if len(self._powers) > 1 else (),
            between_s=(max(seconds - within_s, 0.0),),
            host_loop_s=(harmonic_mean(self._loops),) if self._loops else (),
        )

    def _look(self) -> None:
        loops = self._control()
        if self._before:
            self._loops.append(max((*self._before, *loops)))
        self._before = self._settle() or loops

    def _call(self) -> None:
        count = self._variant.calls_per_sample
        self._within_s += count * time_calls(self._variant, count, self._clocks)
        self._calls += count

    def _change(self) -> Mark:
        """Call until the counter changes. Raises Unmetered if it never does."""
        before, since = self._meter.joules(), self._clocks.wall()
        while True:
            self._call()
            now, joules = self._clocks.wall(), self._meter.joules()
            if joules != before:
                self._read_power(now)
                return Mark(now, joules, self._calls, self._within_s)
            if now - since > STILL_SECONDS:
                raise Unmetered(f"the counter ({self._meter.source}) stood still for {now - since:.0f} s of calls")

    def _read_power(self, now: float) -> None:
        if (watts := self._meter.watts()) is not None:
            self._powers.append((now, watts))


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
