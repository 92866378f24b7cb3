"""Figures of one mode on a GPU in addition to the paired samples: synchronized calls, device time, memory."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import median

from frameworks.adapter import Adapter, Meter, Step
from measurement.cells import Cell
from measurement.sampling import Clocks

SECONDS = 0.2  # for synchronized calls, and for device time
CALLS = (5, 100)  # at least, at most


def calls_within(seconds_per_call: float) -> int:
    """Return how many calls of this length to take."""
    least, most = CALLS
    return max(least, min(most, math.ceil(SECONDS / max(seconds_per_call, 1e-9))))


def submission(
    adapter: Adapter, step: Step, clocks: Clocks, most: int = CALLS[1], meet: Callable[[], None] | None = None
) -> tuple[float, float]:
    """Return the seconds of a warm mode's call with synchronization, and those until the call returns.

    The device is otherwise idle, so the second is the host's time to submit the call. Both are medians over
    `CALLS[0]` to `most` calls; `meet` runs before each.
    """
    least = CALLS[0]
    waited: list[float] = []
    returned: list[float] = []
    while len(waited) < least or (len(waited) < most and sum(waited) < SECONDS):
        step.get_ready()
        if meet:
            meet()
        start = clocks.wall()
        output = step()
        returned.append(clocks.wall() - start)
        adapter.synchronize(output)
        waited.append(clocks.wall() - start)
        del output  # its memory is the next call's
    return median(waited), median(returned)


def device_seconds(meter: Meter | None, step: Step, seconds_per_call: float) -> float | None:
    """Return seconds of a call in which the device is busy; None without a meter, or if calls need new inputs."""
    if meter is None or step.fresh:
        return None
    return meter.device_seconds(step, 1 if seconds_per_call > SECONDS else min(calls_within(seconds_per_call), 10))


class PeakMemory:
    """Peak memory of one mode on a device that it shares with the other modes of its group.

    It is measured before the timing, after the mode's first calls and before the next mode is prepared. Memory
    allocated before this mode is subtracted from the peak of a call. Tensors that modes share are added back.
    """

    def __init__(self, adapter: Adapter, cell: Cell):
        self._adapter, self._meter = adapter, adapter.meter(cell)
        self._before = self._meter.allocated_bytes() if self._meter else None
        self._shared = self._meter.shared_bytes() if self._meter else 0

    def of_a_call(self, step: Step) -> int | None:
        """Return the peak memory of one call of the warm mode in bytes; None if the framework does not report it."""
        if self._meter is None or self._before is None:
            return None
        self._meter.reset_peak()
        self._adapter.synchronize(step())
        peaks = self._meter.peak_bytes()
        if peaks is None:
            return None
        return max(peak - before for peak, before in zip(peaks, self._before, strict=True)) + self._shared
