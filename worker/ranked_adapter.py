"""Cells that several processes train together: rank 0 measures, and directs the others.

Before each operation rank 0 sends all ranks its name, its cell and the number of calls; afterwards it gathers their
results. So all stay in step, eager or compiled. Within a sample nothing is sent between calls. A sample is the time of
the slowest rank: each measures its own, from a barrier until its last call is done.

A rank that fails writes its reason to the job's folder and ends, which ends all: nothing else frees those that wait for
it.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import Any, NoReturn

import numpy as np

import workloads
from frameworks.adapter import Adapter, Meter, Step
from measurement.cells import Cell
from measurement.cores import Cores
from measurement.host import loop_seconds
from measurement.protocol import Communication, Failed, Job
from measurement.sampling import OUTPUTS_KEPT, Clocks, Variant, time_calls
from worker import gpu_figures
from worker.channel import Channel, Untrustworthy
from worker.loading import load_inputs, load_weights
from workloads.spec import Arrays, Workload

GRACE_SECONDS = 5.0  # to find the rank that failed first, since its end makes the others fail
LEFT = "rank-{}.json"  # written by a rank that fails
TAKEN_DOWN = -signal.SIGTERM  # the exit code of ranks that were ended because another one failed


class Rank:
    """State and operations of a rank: every operation is a method, and rank 0 names the next one."""

    def __init__(self, adapter: Adapter, job: Job, count: int, cores: Cores | None):
        self.adapter, self.job, self.cores = adapter, job, cores
        self.steps: dict[str, Step] = {}
        self._outputs: deque[Any] = deque(maxlen=OUTPUTS_KEPT)
        self.group = adapter.join(count)

    def follow(self) -> NoReturn:
        """Execute the operations of rank 0 until the process is ended."""
        while True:
            name, arguments = self.group.share(None)
            self.group.gather(getattr(self, name)(*arguments))

    def cell(self, cell_id: str) -> Cell:
        """Return a cell of the job."""
        return next(cell for cell in self.job.cells if cell.id == cell_id)

    def start_compiler(self, cell_id: str) -> dict[str, Any]:
        """Start the compiler of a cell's mode; returns its settings."""
        return self.adapter.start_compiler(self.cell(cell_id))

    def prepare(self, cell_id: str) -> None:
        """Build the cell's step from the files of its group."""
        cell = self.cell(cell_id)
        group = next(group for group in self.job.groups if cell in group.cells)
        workload = workloads.get(cell.workload, cell.pass_name)
        weights: Any = load_weights(workload, cell, group.weights)
        self.steps[cell_id] = self.adapter.prepare(workload, cell, weights, load_inputs(group.inputs))

    def call(self, cell_id: str) -> None:
        """Make one call and keep its output."""
        self._outputs.append(self.steps[cell_id]())

    def time(self, cell_id: str, calls: int) -> float:
        """Return this rank's seconds per call over so many calls."""
        step, in_turn = self.steps[cell_id], self.cell(cell_id).device_kind == "cpu"
        variant = Variant(cell_id, step, self.adapter.synchronize, synchronize_each_call=in_turn)
        collects = gc.isenabled()
        gc.disable()  # on rank 0 it is off in all samples
        try:
            self.adapter.synchronize(None)
            self.group.barrier()
            return time_calls(variant, calls, Clocks())
        finally:
            if collects:
                gc.enable()

    def submit(self, cell_id: str) -> tuple[float, float]:
        """Return `gpu_figures.submission` of the cell's step, from as many calls on every rank."""
        few = gpu_figures.CALLS[0]
        return gpu_figures.submission(self.adapter, self.steps[cell_id], Clocks(), few, self.group.barrier)

    def loop(self) -> float:
        """Return the control loop's seconds on this rank's CPU."""
        return loop_seconds(time.perf_counter)

    def settle(self) -> float:
        """Return the same after moving to faster CPUs, on a GPU."""
        return self.cores.settle() if self.cores else self.loop()

    def release_cpus(self) -> None:
        """Give this rank's threads all its CPUs again."""
        if self.cores:
            self.cores.release_cpus()

    def communicate(self, cell_id: str) -> tuple[float, float, float] | None:
        """Return `Adapter.communication` of the cell's step."""
        return self.adapter.communication(self.steps[cell_id])

    def rewind(self, cell_id: str, place: int) -> None:
        """Restart the sequence of calls: the next one takes the input set at `place`."""
        self.steps[cell_id].rewind(place)

    def fetch(self) -> Arrays:
        """Return the last output on the host."""
        return self.adapter.to_numpy(self._outputs[-1])

    def checksum(self, cell_id: str) -> int | None:
        """Return the checksum of the cell's trainer; None if it has none, since this rank holds a part of the state."""
        trainer = self.steps[cell_id].call
        return trainer.checksum() if hasattr(trainer, "checksum") else None

    def release(self) -> None:
        """Free the cells' memory."""
        self.steps.clear()
        self._outputs.clear()
        self.adapter.release()

    def memory(self, cell_id: str, question: str) -> int | tuple[int, ...] | None:
        """Return the answer of the cell's meter in bytes; None if the device has none."""
        meter = self.adapter.meter(self.cell(cell_id))
        return getattr(meter, question)() if meter else None


class RankedAdapter(Adapter):
    """The adapter of rank 0: all ranks run its operations on cells with several ranks.

    `other_processes` are the other ranks. It is `out_of_step` from the start of an operation to its end.
    """

    def __init__(self, adapter: Adapter, job: Job, channel: Channel, count: int, cores: Cores | None):
        super().__init__()
        self._adapter, self._job, self._channel = adapter, job, channel
        self._ending = threading.Lock()
        self.out_of_step = True
        here = [sys.executable, "-m", "worker.other_rank", str(Path(job.folder) / "job.json")]
        self._others = adapter.start_others(job.elsewhere or [here] * (count - 1), bool(job.elsewhere))
        self.other_processes = self._others.processes
        self._failed = threading.Event()
        self._codes: dict[int, int] = {}
        threading.Thread(target=self._watch, daemon=True).start()
        self._rank = Rank(adapter, job, count, cores)
        self.out_of_step = False

    def run(self, name: str, *arguments: Any) -> list:
        """Run one operation on every rank; return the results, rank 0 first."""
        self.out_of_step = True
        self._rank.group.share((name, arguments))
        found = self._rank.group.gather(getattr(self._rank, name)(*arguments))
        self.out_of_step = False
        return found

    def loops(self) -> list[float]:
        """Return the control loop's seconds on every rank's CPU."""
        return self.run("loop")

    def settle(self) -> list[float]:
        """Return the same after every rank moved to faster CPUs (`Cores.settle`)."""
        return self.run("settle")

    def release_cpus(self) -> None:
        """Give the threads of all ranks all their CPUs again."""
        self.run("release_cpus")

    def _watch(self) -> None:
        """End the process if another rank ends: on a GPU rank 0 would wait for it."""
        self._codes = self._others.wait()
        self._failed.set()
        time.sleep(GRACE_SECONDS)  # if rank 0 fails by itself, it reports the cell
        at_work = self._channel.at_work
        self.end([at_work] if at_work else [cell.id for cell in self._job.cells], "error", "The other ranks ended.")

    def end(self, cells: Sequence[str], status: str, reason: str) -> NoReturn:
        """Report these cells with the failure of the rank that failed first, and end all ranks."""
        if status != "unsupported":  # each rank reports it
            self._failed.wait(GRACE_SECONDS)
            status, reason = first_failure(Path(self._job.folder), self._codes) or (status, reason)
        if not self._ending.acquire(blocking=False):
            threading.Event().wait()  # the other thread ends the process
        for cell in cells:
            self._channel.send(Failed(cell, status, reason))
        sys.stderr.flush()
        os._exit(1)

    @property
    def device(self) -> Any:
        """Return the framework's own device."""
        return self._adapter.device

    def obstacle(self, device: str, mode: str | None = None) -> str | None:
        return self._adapter.obstacle(device, mode)

    def smoke_test(self, device: str) -> dict[str, Any]:
        return self._adapter.smoke_test(device)

    def configure(self, cell: Cell) -> Any:
        return self._adapter.configure(cell)

    def synchronize(self, output: Any) -> None:
        self._adapter.synchronize(output)

    def processes(self, cell: Cell) -> int:
        return self._adapter.processes(cell)

    def place(self, cell: Cell, arrays: Arrays) -> tuple:
        return self._adapter.place(cell, arrays)

    def start_compiler(self, cell: Cell) -> dict[str, Any]:
        settings = self._adapter.start_compiler(cell)  # an error here leaves the others in step
        if cell.ranks > 1:
            self.run("start_compiler", cell.id)
        return settings

    def compiler(self, cell: Cell) -> str:
        return self._adapter.compiler(cell)

    def prepare(self, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
        if cell.ranks == 1:
            return self._adapter.prepare(workload, cell, weights, inputs)
        self.run("prepare", cell.id)
        return RankedStep(self.run, cell.id, self._rank)

    def to_numpy(self, output: Any) -> Arrays:
        """Return rank 0's values, with the mean loss over the ranks."""
        if not isinstance(output, RankedOutput):
            return self._adapter.to_numpy(output)
        each = self.run("fetch")
        return each[0] | {"loss": np.mean([arrays["loss"] for arrays in each], axis=0)}

    def release(self) -> None:
        self.run("release")

    def meter(self, cell: Cell) -> Meter | None:
        meter = self._adapter.meter(cell)
        return meter if cell.ranks == 1 or meter is None else RankedMeter(self.run, cell.id)


class RankedOutput:
    """The last call's output, held by all ranks."""


class RankedStep(Step):
    """A step that every rank runs; `timer` returns the slowest rank's seconds per call."""

    def __init__(self, run: Callable[..., list], cell_id: str, rank: Rank):
        own = rank.steps[cell_id]
        super().__init__(own.call, (), capture=own.capture, program=own.program)
        self._run, self._cell = run, cell_id

    def __call__(self) -> RankedOutput:
        self._run("call", self._cell)
        return RankedOutput()

    def rewind(self, place: int = 0) -> None:
        self._run("rewind", self._cell, place)

    def timer(self, calls: int) -> float:
        """Return seconds per call."""
        return max(self._run("time", self._cell, calls))

    def submission(self) -> tuple[float, float]:
        """Return `gpu_figures.submission`, each figure of the rank that takes longest."""
        waited, returned = zip(*self._run("submit", self._cell), strict=True)
        return max(waited), max(returned)

    def check_parameters(self) -> None:
        """Raise Untrustworthy if ranks that hold all parameters have different ones.

        Data parallel ranks make the same updates, bit by bit. In 16 bits the losses may agree although they do not.
        """
        if len(set(self._run("checksum", self._cell))) > 1:
            raise Untrustworthy("The ranks' parameters differ after an iteration, so the ranks do not train one model.")

    def communication(self) -> Communication:
        """Return the time of communication between ranks, from a profile of every rank."""
        each = self._run("communicate", self._cell)
        if None in each:
            return Communication(problem="the framework's profile shows no collectives")
        seconds, exposed, whole = zip(*each, strict=True)
        return Communication(fmean(seconds), fmean(exposed), (max(exposed) - min(exposed)) / max(whole))


class RankedMeter(Meter):
    """Memory of the rank that needs most."""

    def __init__(self, run: Callable[..., list], cell_id: str):
        self._ask = partial(run, "memory", cell_id)

    def allocated_bytes(self) -> tuple[int, ...] | None:
        return self._most("allocated_bytes")

    def shared_bytes(self) -> int:
        return max(answer or 0 for answer in self._ask("shared_bytes"))

    def reset_peak(self) -> None:
        self._ask("reset_peak")

    def peak_bytes(self) -> tuple[int, ...] | None:
        return self._most("peak_bytes")

    def _most(self, question: str) -> tuple[int, ...] | None:
        """Return the most bytes of any rank by each count; None if a rank has none."""
        answers = self._ask(question)
        return None if None in answers else tuple(map(max, zip(*answers, strict=True)))


def first_failure(folder: Path, codes: dict[int, int]) -> tuple[str, str] | None:
    """Return status and reason of the rank that failed first; None if only rank 0 failed.

    A killed rank leaves no reason, but the ranks that fail because of it do.
    """
    for rank, code in sorted(codes.items()):
        if code < 0 and code != TAKEN_DOWN:
            name = signal.Signals(-code).name
            hint = " (often the system running out of memory)" if name == "SIGKILL" else ""
            return "crash", f"Rank {rank} was killed by {name}{hint}."
    left = [json.loads(path.read_text()) for path in folder.glob(LEFT.format("*"))]
    if left:
        first = min(left, key=lambda one: one["at"])
        return first["status"], f"Rank {first['rank']}: {first['reason']}"
    return next((("crash", f"Rank {rank} exited with code {code}.") for rank, code in codes.items()), None)
