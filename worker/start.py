"""One start of a process, by phase: from exec to the first compared output; then the steady state of its model."""

from __future__ import annotations

import contextlib
import math
import os
import random
import resource
import shutil
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import frameworks
import worker
from frameworks import start as strategies
from frameworks.adapter import Step, Unsupported
from measurement.flags import EAGER_ERROR
from measurement.machine import descendants
from measurement.noise import NoiseMeter
from measurement.parity import Parity, Sample, by_output
from measurement.profiles import STARTED
from measurement.protocol import OUTPUTS, Filled, Phase, Started
from measurement.sampling import Clocks, Variant, take_rounds
from measurement.starts import EAGER, Start, StartJob
from measurement.warm_up import warm_up
from worker import user_model_reference, writing
from worker.context import Context
from worker.group import GroupWork, refuse_calls_outside
from worker.loading import load_inputs
from worker.started import Imports, Programs
from workloads.spec import places_kept, sampled, without_padding

EXEC = "EAGER_VS_GRAPH_EXEC"  # set by the guard as it becomes this process
COMPILERS = ("g++", "gcc", "c++", "cc", "clang++", "clang", "nvcc")


OWN = ("suite", "compare")  # phases whose imports are the suite's


class Phases:
    """Seconds by phase, each block between two readings of one clock; its imports are a separate phase."""

    def __init__(self, imports: Imports) -> None:
        self.seconds: dict[str, float] = {}
        self._imports = imports

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        begin, before = time.monotonic(), self._imports.seconds
        try:
            yield
        finally:
            imported = 0.0 if name in OWN else self._imports.seconds - before
            self.add(name, time.monotonic() - begin - imported)
            if imported:
                self.add("imports", imported)

    def add(self, name: str, seconds: float) -> None:
        """Add seconds to a phase."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds


class ProcessStart(GroupWork):
    """The one cell of a job that measures its start, or makes its artefact or reference."""

    def __init__(self, context: Context):
        self.began = float(os.environ.get(EXEC, worker.BEGAN))
        self.phases, self.job = Phases(Imports()), context.job.start or StartJob("", "")
        self.phases.add("interpreter", worker.BEGAN - self.began)
        self.phases.add("suite", time.monotonic() - worker.BEGAN)
        begin = time.monotonic()
        self.meter = NoiseMeter(whole=True)
        self.began += time.monotonic() - begin  # no part of the start
        self.context, self.channel, self.group = context, context.channel, context.job.groups[0]
        self.programs_started = Programs()

    def run(self) -> None:
        """Carry out the job; the cell ends in one message."""
        (cell,) = self.group.cells
        with self.context.reporting([cell]):
            if self.job.refers:
                self.refer()
            elif self.job.fills:
                self.fill()
            else:
                self.start()

    def place(self) -> strategies.Place:
        """Import the framework; return the strategy's `Place`."""
        (cell,) = self.group.cells
        with self.phases("imports"):
            self.context.adapter = frameworks.load_adapter(self.context.job.framework)
            self.context.adapter.starts = True
        with self.phases("suite"):
            super().__init__(self.context, self.group)
            weights, inputs = self.weights(), load_inputs(self.group.inputs)
        with self.phases("build"):
            self.adapter.configure(cell)
        return strategies.Place(
            self.adapter,
            self.workload,
            cell,
            weights,
            inputs,
            Path(self.job.artefact),
            self.context.description.default_graph[0] if self.context.description.default_graph else "",
            self.phases,
            self.job.settings,
        )

    def start(self) -> None:
        """Measure the start, then the steady state."""
        with self.phases("imports"):
            strategy = strategies.load(self.context.job.framework, self.job.strategy)
        place = self.place()
        with self.phases("imports"):
            strategy.imports()
        step = strategy.step(place)
        step.get_ready()
        begin = time.monotonic()
        output = step()
        self.adapter.synchronize(output)
        whole = time.monotonic() - begin
        within = dict(strategy.within_first_call())
        for name, seconds in within.items():
            self.phases.add(name, seconds)
        self.phases.add("first_run", whole - sum(within.values()))
        with self.phases("compare"):
            parity = self.parity(step, output)
        wall = time.monotonic() - self.began
        usage = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        programs, waited = self.programs_started.summary(), self.programs_started.seconds
        steady, noise = self.steady(step), self.meter.stop()
        captured = step.capture()
        if self.job.strategy != EAGER and (captured.graphs, captured.compilations) == (0, 0):
            raise Unsupported(f"{self.job.strategy} captured nothing, so eager mode ran: {captured.detail}")
        refuse_calls_outside(self.job.strategy, captured)
        self.channel.send(
            Started(
                self.cell.id,
                Start(
                    wall_s=wall,
                    phases={name: max(0.0, seconds) for name, seconds in self.phases.seconds.items()},
                    parity=parity.needed if math.isfinite(parity.needed) else None,
                    tolerance=parity.tolerance,
                    right=parity.holds,
                    eager_error=parity.eager > EAGER_ERROR,
                    partial=bool(captured.graph_breaks or captured.gave_up),
                    compiled_again=captured.loaded is False,
                    memory_bytes=1024 * usage[0],
                    children_bytes=max(1024 * usage[1], living_children()),
                    programs=programs,
                    programs_s=waited,
                    compiler=next((path for name in COMPILERS if (path := shutil.which(name))), ""),
                    samples=tuple(steady.samples),
                    host_loop_s=tuple(steady.loops),
                    compilations=since(steady),
                    noise=noise,
                ),
            )
        )

    @property
    def cell(self):
        return self.group.cells[0]

    def parity(self, step: Step, output: Any) -> Parity:
        """Return the parity of the first call's output that is nearest to its limit."""
        found = self.arrays(step, output)
        with np.load(self.job.reference) as kept:
            reference = {key: kept[key] for key in kept.files if key.startswith("0.")}
        own = {}
        if self.job.eager:
            with np.load(self.job.eager) as kept:
                own = {key: kept[key] for key in kept.files if key.startswith("0.")}
        dtype = self.cell.dtype
        found, reference = self.workload.comparable(dict(self.cell.parameters), found, reference, dtype)
        allowed = partial(self.workload.tolerance_of, dtype=dtype)
        samples = {key: Sample(shape, places_kept(shape)) for key, shape in self.job.settings.get("shapes", {}).items()}
        return Parity.nearest(by_output(found, reference, own, allowed, dtype, samples=samples).values())

    def arrays(self, step: Step, output: Any) -> dict[str, np.ndarray]:
        """Return the first call's outputs in the form of references, `0.<name>`."""
        subject = step.user_model
        arrays = self.adapter.to_numpy(output) if subject is None else subject.compared(output).arrays
        with np.load(self.group.inputs) as stored:
            key = f"0.{self.workload.padding}"
            counts = stored[key] if key in stored.files else None
        kind = None if subject else np.float32
        return {f"0.{name}": sampled(value, kind) for name, value in without_padding(arrays, counts).items()}

    def steady(self, step: Step) -> Variant:
        """Sample the warm step, on fast CPUs; return its variant."""
        clocks = Clocks()
        variant = Variant(
            name=self.cell.id,
            step=step,
            synchronize=self.adapter.synchronize,
            compilations=lambda: step.capture().compilations,
            synchronize_each_call=self.cell.device_kind == "cpu",
            get_ready=step.get_ready if step.fresh else None,
        )
        self.channel.send(Phase(self.cell.id, "steady state"))
        warm_up(variant, STARTED, clocks)
        order, control = random.Random(self.context.job.seed), self.context.control(self.cell)
        self.context.find_cores(self.cell)
        with self.context.on_fast_cpus(self.cell) as settle:
            take_rounds([variant], STARTED, clocks, order, control=control, settle=settle)
        return variant

    def fill(self) -> None:
        """Make the artefact."""
        strategy = strategies.load(self.context.job.framework, self.job.strategy)
        place = self.place()
        strategy.imports()
        strategy.fill(place)
        self.channel.send(Filled(self.cell.id, time.monotonic() - self.began))

    def refer(self) -> None:
        """Check the device, call eager mode, and save its outputs for comparison with other processes' first output."""
        self.context.start(self.cell)
        super().__init__(self.context, self.group)
        member = self.first_called(self.cell, self.weights(), load_inputs(self.group.inputs))
        reference, eager = self.job.reference, ""
        settings: dict[str, Any] = {}
        folder = Path(self.context.job.folder) / OUTPUTS
        if not self.workload.has_reference:
            subject, tolerance = user_model_reference.subject_of(member.step), self.workload.tolerance[self.cell.dtype]
            found = user_model_reference.examined(subject, self.workload.parity_calls, tolerance, folder, 0)
            reference, eager, settings = found.reference, found.eager, dict(found.settings)
            settings["shapes"] = found.shapes
            settings["fresh"] = "yes" if member.step.fresh else ""
        elif not reference:
            member.step.rewind()
            reference = writing.save(folder / "reference.npz", self.arrays(member.step, member.step()))
        self.channel.send(Filled(self.cell.id, time.monotonic() - self.began, reference, eager, settings))


def since(variant: Variant) -> int | None:
    """Return the compilations during steady-state sampling."""
    before, after = variant.compilations_before, variant.compilations()
    return None if before is None or after is None else after - before


def living_children() -> int:
    """Return the highest peak of memory among living descendants, in bytes."""
    peak = 0
    for process in descendants():
        with contextlib.suppress(OSError, ValueError):
            text = Path(f"/proc/{process}/status").read_text()
            lines = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
            peak = max(peak, 1024 * int(lines.get("VmHWM", "0").split()[0]))
    return peak


def start(context: Context) -> None:
    """Measure one start, or make its artefact or reference."""
    ProcessStart(context).run()
