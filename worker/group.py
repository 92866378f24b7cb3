"""Preparation of a group for every command: its weights and inputs, and each mode built, called and captured."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import frameworks
import workloads
from frameworks import program
from frameworks.adapter import Capture, Step, Unsupported
from frameworks.user_file import in_a_line
from measurement.cells import Cell
from measurement.protocol import GroupJob
from measurement.sampling import Variant, first_call
from worker import writing
from worker.context import Context
from worker.gpu_figures import PeakMemory
from worker.loading import load_weights
from worker.ranked_adapter import RankedStep

CALLS_TO_CAPTURE = 2


@dataclass
class Member:
    """A cell of the group after its mode's first call, with its step."""

    cell: Cell
    step: Step
    variant: Variant
    captured: Capture
    prepare_s: float
    memory: PeakMemory
    load_s: float | None  # None if nothing is loaded before the first call
    build_s: float | None = None  # this and the next of a mode that builds an artefact
    artefact_bytes: int | None = None
    peak_bytes: int | None = None


class GroupWork:
    """The modes of one group in a worker. `group` is an entry of the worker's job."""

    def __init__(self, context: Context, group: GroupJob):
        self.context, self.adapter, self.channel = context, context.adapter, context.channel
        self.group = group
        self.compilers: dict[str, dict] = {}  # their settings by cell
        self.cells = list(group.cells)
        self.workload = workloads.get(self.cells[0].workload, self.cells[0].pass_name)

    def weights(self) -> Mapping[str, np.ndarray]:
        """Return the canonical weights by name, from memory-mapped files."""
        return load_weights(self.workload, self.cells[0], self.group.weights)

    def startable(self) -> list[Cell]:
        """Start the cells' compilers first; return the cells with a compiler and report the others."""
        started = []
        for cell in self.cells:
            with self.context.reporting([cell]):
                self.start_compiler(cell)
                started.append(cell)
        return started

    def start_early(self) -> None:
        """Start the cells' compilers while another process has the device; leave all reports to `startable`."""
        for cell in self.cells:
            with self.context.reporting([cell]), contextlib.suppress(Unsupported):
                self.start_compiler(cell)

    def start_compiler(self, cell: Cell) -> None:
        """Start a cell's compiler and keep its settings. Raises Unsupported where there is none."""
        self.channel.phase(cell, "compiler start")
        if missing := frameworks.lacking(cell.framework, cell.mode, cell.device_kind):
            raise Unsupported(missing)
        start = time.perf_counter()
        self.compilers[cell.id] = self.adapter.start_compiler(cell)
        seconds = time.perf_counter() - start
        if self.context.description.mode(cell.mode).graph:  # the first of those that share a compiler starts it
            self.context.compiler_starts.setdefault(self.adapter.compiler(cell), seconds)

    def compiler_start(self, cell: Cell) -> float | None:
        """Return the seconds in which this process started the mode's compiler; None for eager modes."""
        graph = self.context.description.mode(cell.mode).graph
        return self.context.compiler_starts[self.adapter.compiler(cell)] if graph else None

    def first_called(self, cell: Cell, weights, inputs) -> Member:
        """Return one mode after its first call. Raises Unsupported for a partial capture without reported breaks."""
        start = time.perf_counter()
        self.channel.phase(cell, "prepare")
        memory = PeakMemory(self.adapter, cell)
        step = self.prepared(cell, weights, inputs)
        variant = Variant(
            name=cell.id,
            step=step,
            parts=step.parts and step.called_in_parts,
            synchronize=self.adapter.synchronize,
            compilations=lambda: step.capture().compilations,
            synchronize_each_call=cell.device_kind == "cpu",
            get_ready=step.get_ready if step.fresh else None,
            timer=step.timer if isinstance(step, RankedStep) else None,
        )
        prepare_s = time.perf_counter() - start
        build_s, artefact = self.seconds_of(cell, "build", step.build)
        if artefact:
            artefact.check()
        load_s, _ = self.seconds_of(cell, "load", step.load)
        self.channel.phase(cell, "first call")
        forked = self.context.forks.count
        first_call(variant, self.context.clocks)
        graph = self.context.description.mode(cell.mode).graph
        if not graph:  # compilers may start processes
            self.context.forks.refuse(forked)
        for _ in range(CALLS_TO_CAPTURE):  # a CUDA graph is recorded after the first call
            if graph and not step.capture().whole:
                self.adapter.synchronize(step())
        captured = step.capture()
        if graph and not captured.whole and not (captured.breaks and captured.graphs):
            raise Unsupported(f"{cell.mode} did not capture the whole model: {captured.detail or captured}")
        if graph and 0 in (captured.graphs, captured.compilations):
            raise Unsupported(f"{cell.mode} reports a whole graph but captured or compiled nothing: {captured}")
        member = Member(cell, step, variant, captured, prepare_s, memory, load_s)
        if artefact:
            member.build_s, member.artefact_bytes = build_s if artefact.built else None, artefact.size
        return member

    def refuse_outside(self, member: Member) -> None:
        """Raise Unsupported if a call of a graph mode ran no graph: it would time eager mode."""
        if self.context.description.mode(member.cell.mode).graph:
            refuse_calls_outside(member.cell.mode, member.step.capture())

    def seconds_of(self, cell: Cell, phase: str, work: Callable[[], Any] | None) -> tuple[float | None, Any]:
        """Return the seconds of a step's work before its first call, and the work's result; None without work."""
        if work is None:
            return None, None
        self.channel.phase(cell, phase)
        start = time.perf_counter()
        given = work()
        return time.perf_counter() - start, given

    def prepared(self, cell: Cell, weights, inputs) -> Step:
        """Return the adapter's step. Raises Unsupported for a family that is described but not implemented."""
        try:
            return self.adapter.prepare(self.workload, cell, weights, inputs)
        except KeyError as error:
            if error.args != (self.workload.family,):
                raise
            title = self.context.description.title
            raise Unsupported(
                f"{title} has no {cell.implementation} model of the family {self.workload.family}, although its "
                "description names it."
            ) from error

    def programs(self, members: list[Member]) -> dict[str, dict]:
        """Return whether each graph mode runs eager mode's program. Call it last: listing runs the models."""
        modes = [member for member in members if member.variant.name == member.cell.id]
        listed = {member.variant.name: self.listed(member) for member in modes}
        graphs = [m for m in modes if self.context.description.mode(m.cell.mode).graph]
        eager = [listed[m.variant.name] for m in modes if m not in graphs]
        return {m.variant.name: program.verdict(eager, listed[m.variant.name]) for m in graphs}

    def listed(self, member: Member) -> program.Program | str:
        """Return the operators of one mode, or why they are unknown."""
        self.channel.phase(member.cell, "program")
        try:
            operations = member.step.program()
            member.step.rewind()
        except Exception as error:  # the measurement is still valid
            writing.check_room(self.context.job.folder)
            return in_a_line(error, 300)
        if operations is None or isinstance(operations, str):
            return operations or "the framework does not show its operators"
        return tuple(operations)


def refuse_calls_outside(name: str, captured: Capture) -> None:
    """Raise Unsupported if a call of a graph mode, or strategy, ran no graph."""
    if captured.calls_outside:
        raise Unsupported(
            f"{name} {captured.gave_up or 'ran a call without any graph'}, so calls run eager mode's code: the value "
            "in this guard must not change between calls."
        )
