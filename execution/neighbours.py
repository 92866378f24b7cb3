"""Find other programs that keep the machine busy before a measurement, which would disturb every figure."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from measurement import machine, programs

MOST_CORES, MOST_SHARE = 0.3, 0.05  # a machine is quiet if other programs use at most these cores or this share
MOST_GPU_PERCENT = 10
GLANCE, LOOK, WAIT = 0.25, 1.0, 60.0  # seconds of the first look, of each later look, and of the longest wait
NAMED = 3  # programs at most
WHY = "Measurements on a busy machine are unreliable."


@dataclass(frozen=True)
class Busy:
    """Cores that other programs use, of how many, with the names of the busiest; percent of a GPU's time."""

    cores: float
    cpus: int
    names: tuple[str, ...] = ()
    gpu_percent: int = 0

    @property
    def disturbs(self) -> bool:
        """Return whether other programs would change the figures."""
        return self.cores > max(MOST_CORES, MOST_SHARE * self.cpus) or self.gpu_percent > MOST_GPU_PERCENT

    def sentence(self) -> str:
        """Return a sentence on the busy devices and their programs."""
        on_gpu = f" and {self.gpu_percent} % of the GPU" if self.gpu_percent > MOST_GPU_PERCENT else ""
        who = f": {', '.join(self.names)}" if self.names else ""
        return f"Other programs use {self.cores:.1f} of {self.cpus} cores{on_gpu} now{who}."


def look(seconds: float, gpu: bool) -> Busy:
    """Return the load by other processes than this and its children; those in other containers have no name."""
    before, ticks, start = _used(), machine.cpu_ticks(), time.perf_counter()
    time.sleep(seconds)
    family = {os.getpid(), *machine.descendants()}  # such as one that makes reference outputs
    after, later, passed = _used(), machine.cpu_ticks(), time.perf_counter() - start
    spent = {process: max(0.0, used - before.get(process, used)) for process, used in after.items()}
    own = sum(spent.pop(process, 0.0) for process in family)
    busiest = sorted(spent, key=spent.__getitem__, reverse=True)[:NAMED]
    names = tuple(f"{machine.process_name(one)} (process {one})" for one in busiest if spent[one] > 0.1 * passed)
    cores = max(0.0, later[0] - ticks[0] - own) / passed if ticks and later else 0.0
    return Busy(cores, os.cpu_count() or 1, names, _gpu_percent() if gpu else 0)


def await_quiet(console: Console, gpu: bool, force: bool, watch: Callable[[float, bool], Busy] = look) -> None:
    """Print why the machine is busy, if it is; on a terminal wait up to `WAIT` seconds for quiet, unless `force`."""
    busy, waits = watch(GLANCE, gpu), console.is_terminal and not force
    if busy.disturbs and waits:
        busy = watch(LOOK, gpu)  # the first look may have seen a short burst
    if not busy.disturbs:
        return
    ending = f"Waiting up to {WAIT:.0f} s for them to stop; FORCE=1 measures anyway." if waits else "Measuring anyway."
    console.print(f"{busy.sentence()} {WHY} {ending}", style="yellow", soft_wrap=True)
    left = WAIT
    while waits and busy.disturbs and left > 0:
        busy, left = watch(LOOK, gpu), left - LOOK
    if waits:
        ending = "Measuring anyway." if busy.disturbs else "Quiet now."
        console.print(ending, style="yellow")


def _used() -> dict[int, float]:
    """Return seconds of CPU time by process."""
    return {int(path.name): machine.cpu_seconds(path.name) for path in Path("/proc").glob("[0-9]*")}


def _gpu_percent() -> int:
    """Return the busiest GPU's utilization in percent; 0 if unknown."""
    command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
    values = [line.strip() for line in (programs.answer(command) or "").splitlines()]
    return max((int(value) for value in values if value.isdigit()), default=0)
