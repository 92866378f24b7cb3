"""Profile one group in a worker: time its modes in turn, then profile a few calls of each; or eager alone."""

from __future__ import annotations

import contextlib
import math
import random
import shutil
import traceback
from pathlib import Path
from statistics import median
from typing import Any

import frameworks
from frameworks.adapter import Unsupported
from frameworks.traces.profile import Profile, Profiler
from measurement.cells import Cell
from measurement.profiles import EXPLAINED
from measurement.protocol import Explained, GroupJob, Profiled
from measurement.sampling import Variant, take_rounds, time_calls
from measurement.warm_up import warm_up
from worker import writing
from worker.context import Context
from worker.group import GroupWork, Member
from worker.loading import load_inputs

# Calls for this long, within bounds: a longer profile adds no information, and takes long to read.
PROFILED_SECONDS, FEWEST_CALLS, MOST_CALLS = 0.5, 3, 20
CALLS_BEFORE = 5  # if a mode is profiled before timing
# Timings of eager mode before its profile.
FEWEST_TIMINGS, TIMING_SECONDS, WARM_SECONDS = 3, 0.05, 1.0


class Explanation(GroupWork):
    """The modes of one group, profiled one after the other."""

    def __init__(self, context: Context, profiler: Profiler | None, group: GroupJob, traces: Path):
        super().__init__(context, group)
        self._profiler, self.traces = profiler, traces
        self.profiles: dict[str, tuple[int, Profile]] = {}  # by cell: number of profiled calls, and their profile

    @property
    def profiler(self) -> Profiler:
        """Return the framework's profiler. Raises Unsupported if it has none here."""
        if self._profiler is None:
            raise Unsupported(f"{self.context.description.title} has no profiler on this device.")
        return self._profiler

    def run(self) -> None:
        """Time the modes alternately and profile each; every cell ends in one message. Frees the group's memory."""
        cells, members = self.startable(), []
        weights, inputs = self.weights(), load_inputs(self.group.inputs)
        for cell in cells:
            with self.context.reporting([cell]):
                members.append(self.warm(cell, weights, inputs))
        self.sample(members)
        profiled = []
        for member in members:
            with self.context.reporting([member.cell]) as trouble:
                if member.cell.id not in self.profiles:  # before timing
                    self.profile(member, median(member.variant.samples))
            profiled += [] if trouble else [member]
        programs = self.programs(profiled)
        for member in profiled:
            with self.context.reporting([member.cell]):
                self.explain(member, programs.get(member.cell.id, {}))
        members.clear()
        profiled.clear()
        self.adapter.release()

    def warm(self, cell: Cell, weights, inputs) -> Member:
        """Return one mode, built and warm. Raises Unsupported if the framework has no profiler on this device."""
        before_timing = self.profiler.before_timing
        member = self.first_called(cell, weights, inputs)
        if before_timing:
            time_calls(member.variant, CALLS_BEFORE, self.context.clocks)
            self.profile(member, time_calls(member.variant, CALLS_BEFORE, self.context.clocks))
        self.channel.phase(cell, "warm-up")
        warm_up(member.variant, EXPLAINED, self.context.clocks)
        self.refuse_outside(member)
        return member

    def sample(self, members: list[Member]) -> None:
        """Time the modes in turn on fast CPUs, before profiling: some frameworks' profilers have lasting effects."""
        job, cells = self.context.job, [member.cell for member in members]
        if not members:
            return
        self.channel.phase(cells[0], "sampling")
        order = random.Random(f"{job.seed}/{cells[0].group_id}")
        variants, control = [member.variant for member in members], self.context.control(cells[0])
        with self.context.reporting(cells) as trouble, self.context.on_fast_cpus(cells[0]) as settle:
            take_rounds(variants, EXPLAINED, self.context.clocks, order, control=control, settle=settle)
        if trouble:
            members.clear()

    def explain(self, member: Member, program: dict[str, str | None]) -> None:
        """Report one mode, with the verdict `program` on a graph's program."""
        cell, captured, samples = member.cell, member.captured, member.variant.samples
        calls, profile = self.profiles[cell.id]
        self.channel.send(
            Explained(
                cell.id, latency_s=median(samples), samples_s=tuple(samples), calls=calls, **vars(profile),
                backend=captured.backend, detail=captured.detail, attention=tuple(self.attention(member)),
                program=program,
            )
        )  # fmt: skip

    def profile(self, member: Member, latency: float) -> None:
        """Profile calls that take about `latency` seconds each."""
        calls = min(max(math.ceil(PROFILED_SECONDS / latency), FEWEST_CALLS), MOST_CALLS)
        self.channel.phase(member.cell, "profile")
        folder = self.traces / member.cell.mode
        with writing.suite_file(folder):
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
        self.profiles[member.cell.id] = (
            calls,
            self.profiler.profile(member.step, self.adapter.synchronize, calls, folder),
        )

    def attention(self, member: Member) -> list[dict[str, Any]]:
        """Return the mode's calls of the attention operator; empty after an error, which the worker's log has."""
        self.channel.phase(member.cell, "attention")
        try:
            calls = self.profiler.attention(member.step, eager=frameworks.is_baseline(member.cell))
            member.step.rewind()
        except Exception:  # the profile is still valid
            writing.check_room(self.context.job.folder)
            with contextlib.suppress(OSError):  # the log is no result
                traceback.print_exc()
            return []
        return calls


class EagerProfile(Explanation):
    """Eager mode of a group, profiled in a separate process, since a profiler may slow later measurements."""

    def run(self) -> None:
        """Report the seconds of a call, and those in which the device is busy. Frees the group's memory."""
        (cell,) = self.cells
        with self.context.reporting([cell]):
            _ = self.profiler  # refuse before anything is built
            member = self.first_called(cell, self.weights(), load_inputs(self.group.inputs))
            if member.step.fresh:
                raise Unsupported(
                    "Each call needs new inputs, so the profile would contain the kernels that create them."
                )
            latency = self.warm_latency(member.variant)
            self.profile(member, latency)
            _, profile = self.profiles[cell.id]
            self.channel.send(Profiled(cell.id, latency, profile.busy_s))
        self.adapter.release()

    def warm_latency(self, variant: Variant) -> float:
        """Return the seconds of a call: the least of several timings within `WARM_SECONDS`."""
        clocks, calls = self.context.clocks, FEWEST_CALLS
        timings: list[float] = []
        start = clocks.wall()
        while len(timings) < FEWEST_TIMINGS or clocks.wall() - start < WARM_SECONDS:
            timings.append(time_calls(variant, calls, clocks))
            calls = max(FEWEST_CALLS, math.ceil(TIMING_SECONDS / timings[-1]))
        return min(timings)


def load_profiler(framework: str, dumps: Path) -> Profiler | None:
    """Return the framework's profiler, made before anything is compiled; None if it has none."""
    with writing.suite_file(dumps):
        dumps.mkdir(parents=True, exist_ok=True)
    return frameworks.load_profiler(framework, dumps)
