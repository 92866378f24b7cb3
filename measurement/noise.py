"""Activity of the rest of the machine while samples were taken."""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Collection
from dataclasses import dataclass

from measurement.gpu import GpuState
from measurement.machine import cpu_megahertz, cpu_seconds, cpu_ticks, descendants


@dataclass(frozen=True)
class Noise:
    """Disturbance over one timed region. Shares are relative to its wall time; None if the system reports none."""

    seconds: float
    other_load_cores: float | None  # cores kept busy by all other processes
    steal_share: float | None  # cores' worth of time that the hypervisor took away
    involuntary_switches_per_s: float
    frequency_change: float | None  # relative, end against start
    load_average: float
    gpu: GpuState | None = None  # if a GPU was measured


class NoiseMeter:
    """Reads the counters at construction and again at `stop`.

    `cpus` are the CPUs whose load disturbs: None for all, since memory and clocks are shared. A process passes its own
    CPUs if similar processes run at the same time on separate CPUs. The load of `processes`, the other ranks, does not
    count; nor does that of descendants, with `whole`.
    """

    def __init__(
        self, cpus: Collection[int] | None = None, processes: Collection[int] = (), whole: bool = False
    ) -> None:
        self._cpus, self._processes, self._whole = cpus, processes, whole
        self._start = self._read()

    def _read(self) -> tuple:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        own_s = time.process_time() + sum(map(cpu_seconds, self._processes))
        if self._whole:
            ended = resource.getrusage(resource.RUSAGE_CHILDREN)
            own_s += ended.ru_utime + ended.ru_stime + sum(cpu_seconds(one, waited=True) for one in descendants())
        return time.perf_counter(), own_s, cpu_ticks(self._cpus), usage.ru_nivcsw, cpu_megahertz()

    def stop(self) -> Noise:
        """Return the disturbance since construction."""
        wall0, own0, ticks0, switches0, frequency0 = self._start
        wall1, own1, ticks1, switches1, frequency1 = self._read()
        seconds = max(wall1 - wall0, 1e-9)
        other = steal = None
        if ticks0 and ticks1:
            other = max(0.0, (ticks1[0] - ticks0[0]) - (own1 - own0)) / seconds
            steal = (ticks1[1] - ticks0[1]) / seconds
        return Noise(
            seconds=seconds,
            other_load_cores=other,
            steal_share=steal,
            involuntary_switches_per_s=(switches1 - switches0) / seconds,
            frequency_change=abs(frequency1 / frequency0 - 1) if frequency0 and frequency1 else None,
            load_average=os.getloadavg()[0],
        )
