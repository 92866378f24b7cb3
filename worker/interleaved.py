"""One group under measurement in a worker: prepare its modes, warm each up, sample them alternately, and report."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import frameworks
from frameworks.adapter import Step
from frameworks.user_file import in_a_line
from measurement import host
from measurement.cells import Cell
from measurement.completion import OUTSTANDING_SHARE, outstanding_share
from measurement.controls import delayed, independent_timer
from measurement.energy import Energy, Unmetered, counter, take_windows
from measurement.first_figures import ROUNDS, FirstFigures, figures_of, first_figures
from measurement.gpu import GpuMeter
from measurement.noise import Noise, NoiseMeter
from measurement.profiles import Profile
from measurement.protocol import (
    OUTPUTS,
    PRIME,
    Communication,
    Control,
    GroupJob,
    Primed,
    Progress,
    Provisional,
    Report,
    Unseen,
    UserModelReport,
)
from measurement.sampling import Variant, first_call, take_rounds, time_calls
from measurement.text import percent
from measurement.warm_up import shorten_samples, warm_up
from worker import gpu_figures, user_model_reference, writing
from worker.channel import Untrustworthy
from worker.context import Context
from worker.group import CALLS_TO_CAPTURE, GroupWork, Member
from worker.loading import load_inputs, padding_of
from worker.ranked_adapter import RankedStep
from workloads.spec import sampled, without_padding

WATCHED_CALLS = 3  # of eager mode, after its samples
PROGRESS_SECONDS = 1.0
GPU_READING_SECONDS = 0.2


class InterleavedComparison(GroupWork):
    """The modes of one group, measured against each other."""

    def __init__(self, context: Context, group: GroupJob, profile: Profile, position: int, releases: bool):
        super().__init__(context, group)
        self.profile, self.position, self.releases = profile, position, releases
        self.user_model: UserModelReport | None = None  # of a user's model
        self.energy: dict[str, Energy] = {}  # by variant
        self.first_full_s = context.full_speed_s  # of the control loop, as far as first figures know
        self.unshown = False  # whether first figures of the last mode are still to be sent

    def run(self) -> None:
        """Measure every cell; each ends in one message. Frees the group's memory."""
        members = self.warm_members()
        members += [self.control(members, control) for control in self.group.controls] if members else []
        noise = self.sample(members)
        if noise and self.context.job.energy and self.position:  # peak benchmarks have none
            self.take_energy(members)
        if noise:
            self.send_reports(members, noise)
        members.clear()
        if self.releases:
            self.channel.phase(self.cells[0], "release")
            self.adapter.release()

    def warm_members(self) -> list[Member]:
        """Build, compile and warm up the modes, cheapest first; send first figures of each while others follow.

        Returns the modes that succeeded; none in a job that only fills compile caches.
        """
        cells = sorted(self.startable(), key=lambda cell: self.context.description.mode(cell.mode).compile_rank)
        weights, inputs = self.weights(), load_inputs(self.group.inputs)
        members: list[Member] = []
        while cells:
            cell = cells.pop(0)
            with self.context.reporting([cell]) as trouble:
                member = self.prepare(cell, weights, inputs)
            if trouble:
                continue
            if self.context.job.kind == PRIME:
                self.channel.send(Primed(cell.id))
                continue
            if not members and not self.find_out(member, [cell, *cells]):
                break
            with self.context.reporting([cell]) as trouble:
                self.channel.phase(cell, "warm-up")
                warm_up(member.variant, self.profile, self.context.clocks)
                self.time_submission(member)
                self.refuse_outside(member)
            if not trouble:
                members.append(member)
                self.unshown = self.has_first_figures and not cells  # sampling sends these
                if self.has_first_figures and cells:
                    self.take_first_figures(members)
        return members

    def take_first_figures(self, members: list[Member]) -> None:
        """Send figures of the last of `members` from a few rounds, interleaved with eager mode.

        A member that fails is removed.
        """
        self.channel.phase(members[-1].cell, "first figures")
        beside, at_work = self.beside(members), [members[-1].cell]

        def on_sample(variant: Variant) -> None:
            at_work[0] = next(member.cell for member in beside if member.variant.name == variant.name)
            self.channel.mark(at_work[0].id)

        variants = [member.variant for member in beside]
        with self.context.reporting(at_work) as trouble, self.context.on_fast_cpus(at_work[0]) as settle:
            clocks, control = self.context.clocks, self.context.control(at_work[0])
            figures = first_figures(variants, self.profile, clocks, on_sample, control, self.first_full_s, settle)
            self.first_full_s = figures.full_s
            self.send_first_figures(beside, figures)
        if trouble:
            members[:] = [member for member in members if member.cell is not at_work[0]]

    @property
    def has_first_figures(self) -> bool:
        """Return whether figures are shown before the process ends: in the first one that measures the group."""
        return not (self.group.settled or self.group.controls)

    def beside(self, members: list[Member]) -> list[Member]:
        """Return the last of `members`, after eager mode if it was measured."""
        first, last = members[0], members[-1]
        return [last] if first is last or self.context.description.mode(first.cell.mode).graph else [first, last]

    def send_first_figures(self, beside: list[Member], figures: FirstFigures) -> None:
        """Send figures of a mode and of eager mode `beside` it."""
        for member, seconds in zip(beside, figures.seconds, strict=True):
            speedup = figures.speedup if member is beside[-1] else None
            self.channel.send(Provisional(member.cell.id, seconds, speedup, figures.slowed))

    def prepare(self, cell: Cell, weights, inputs) -> Member:
        """Build one mode, make its first call, and measure its peak memory and synchronization before any timing."""
        member = self.first_called(cell, weights, inputs)
        if self.group.controls:  # these wait for each call, so the modes compared with them do as well
            member.variant.synchronize_each_call = True
        self.channel.phase(cell, "checks")
        member.peak_bytes = member.memory.of_a_call(member.step)  # before another mode takes memory
        if not self.group.settled:
            self.check_synchronization(member)  # before unsynchronized calls pile up
        return member

    def find_out(self, member: Member, cells: list[Cell]) -> bool:
        """Compute a user model's reference outputs and the cost of a call, from its first mode.

        Returns whether that succeeded; else no cell is measured, and all of `cells` have failed.
        """
        if self.workload.has_reference or self.group.settled:
            return True
        self.channel.phase(member.cell, "reference")
        subject, folder = user_model_reference.subject_of(member.step), Path(self.context.job.folder) / OUTPUTS
        calls, tolerance = self.workload.parity_calls, self.workload.tolerance[member.cell.dtype]
        with self.context.reporting(cells) as trouble:
            forked = self.context.forks.count
            self.user_model = user_model_reference.examined(subject, calls, tolerance, folder, self.position)
            self.context.forks.refuse(forked)
        return not trouble

    def of_user(self, member: Member) -> UserModelReport | None:
        """Return the report on a user's model; with graph breaks also a call's seconds within graphs and in total."""
        if (
            self.user_model is None
            or not member.captured.breaks
            or not member.step.watch
            or member.cell.pass_name == "training"
        ):
            return self.user_model  # graphs of backward cannot be timed separately
        self.channel.phase(member.cell, "graph breaks")
        inside, whole = user_model_reference.priced(member.step, self.adapter.synchronize, self.context.clocks)
        return replace(self.user_model, inside_s=inside, whole_s=whole)

    def control(self, members: list[Member], control: Control) -> Member:
        """Return a second variant on the warm step of a cell: the same, slower, or with another timer."""
        origin = next(member for member in members if member.cell.id == control.of)
        variant = replace(origin.variant, name=control.id)
        if control.delay:
            variant.step = delayed(origin.step, variant.synchronize, control.delay)
        if control.own_timer:
            call = lambda: variant.synchronize(variant.step())  # noqa: E731
            variant.timer = (frameworks.load_timer(self.context.job.framework) or independent_timer)(call)
        return replace(origin, variant=variant)

    def check_synchronization(self, member: Member) -> None:
        """Raise `Untrustworthy` if `synchronize` returns early; once per mode, since it depends on nothing else."""
        if member.cell.mode in self.context.synchronizing:
            return
        self.context.synchronizing.add(member.cell.mode)
        share = outstanding_share(
            member.step, self.adapter.synchronize, self.on_host(member.step), self.context.clocks.wall, time.sleep
        )
        if share > OUTSTANDING_SHARE:
            raise Untrustworthy(
                f"synchronize returned before {percent(share)} of the call was done, so the timer would measure the "
                f"submission only."
            )

    def sample(self, members: list[Member]) -> Noise | None:
        """Sample the modes alternately; return the noise. Report and remove a mode that fails; restart the rest."""
        last_progress = last_reading = time.perf_counter()
        device = self.cells[0].device
        gpu = GpuMeter(int(device.partition(":")[2])) if device != "cpu" else None

        def on_round(rounds: int) -> None:
            nonlocal last_progress, last_reading
            if rounds == ROUNDS and self.unshown:
                self.unshown, beside = False, self.beside(members)
                loops = [loop for member in members for loop in member.variant.loops]
                full_s = host.full_seconds(loops, self.first_full_s)
                self.send_first_figures(beside, figures_of([member.variant for member in beside], full_s))
            if gpu and time.perf_counter() - last_reading >= GPU_READING_SECONDS:
                last_reading = time.perf_counter()
                gpu.read()
            if time.perf_counter() - last_progress >= PROGRESS_SECONDS:
                last_progress = time.perf_counter()
                seconds = {member.variant.name: member.variant.samples[-1] for member in members}
                self.channel.send(Progress(rounds, seconds))

        while members:
            by_name = {member.variant.name: member.cell for member in members}
            at_work = [members[0].cell]

            def on_sample(variant: Variant, by_name=by_name, at_work=at_work) -> None:
                at_work[0] = by_name[variant.name]
                self.channel.mark(at_work[0].id)

            self.channel.phase(at_work[0], "sampling")
            job = self.context.job
            order = random.Random(f"{job.seed}/{job.process}/{at_work[0].group_id}")
            for member in members:
                member.variant = replace(
                    member.variant, samples=[], loops=[], single_calls=[], parts_s=[], cpu_seconds=0.0, wall_seconds=0.0
                )
            with self.context.reporting(at_work), self.context.on_fast_cpus(at_work[0]) as settle:
                for member in members:  # other modes compiled since their warm-up
                    on_sample(member.variant)
                    time_calls(member.variant, member.variant.calls_per_sample, self.context.clocks)
                ranked = self.context.ranked
                meter = NoiseMeter(job.own_cpus, ranked.other_processes if ranked else ())
                variants = [member.variant for member in members]
                clocks, control = self.context.clocks, self.context.control(at_work[0])
                known_s = self.context.full_speed_s
                self.context.full_speed_s = take_rounds(
                    variants, self.profile, clocks, order, on_round, on_sample, control, known_s, settle
                )
                return replace(meter.stop(), gpu=gpu.state() if gpu else None)
            members[:] = [member for member in members if member.cell is not at_work[0]]
        return None

    def take_energy(self, members: list[Member]) -> None:
        """Measure the energy of each mode in alternating windows; remove a mode that fails."""
        by_name = {member.variant.name: member.cell for member in members if member.variant.name == member.cell.id}
        at_work = [members[0].cell]

        def on_window(variant: Variant) -> None:
            at_work[0] = by_name[variant.name]
            self.channel.phase(at_work[0], "energy")

        job, variants = self.context.job, [member.variant for member in members if member.variant.name in by_name]
        order = random.Random(f"{job.seed}/{job.process}/{at_work[0].group_id}/energy")
        with self.context.reporting(at_work) as trouble, self.context.on_fast_cpus(at_work[0]) as settle:
            try:
                if at_work[0].ranks > 1:
                    raise Unmetered("the counter covers one rank: measure energy with RANKS=1")
                meter = counter(at_work[0].device)
                clocks, control = self.context.clocks, self.context.control(at_work[0])
                settle = settle or (lambda: ())
                self.energy = take_windows(variants, meter, clocks, order, time.sleep, on_window, control, settle)
            except Unmetered as reason:
                self.energy = dict.fromkeys(by_name, Energy(problem=str(reason)))
        if trouble:
            members[:] = [member for member in members if member.cell is not at_work[0]]

    def send_reports(self, members: list[Member], noise: Noise) -> None:
        """Report the whole group at once: if the process dies over one mode, the others are measured together again."""
        if not self.does_known_work(members):
            return
        reports: dict[str, Report] = {}
        for member in members:
            with self.context.reporting([member.cell]):
                self.channel.phase(member.cell, "outputs")
                reports[member.variant.name] = self.report(member, noise)
        reported = [member for member in members if member.variant.name in reports]
        for member in reported:  # after all reports, since modes may share compiled code
            with self.context.reporting([member.cell]) as trouble:
                name = member.variant.name
                reports[name] = replace(reports[name], unseen=self.unseen(member))
            if trouble:
                del reports[member.variant.name]
        of_graphs = {} if self.group.settled else self.programs(reported)
        for name, verdict in of_graphs.items():
            if name in reports:
                reports[name] = replace(reports[name], **verdict)
        for report in reports.values():
            self.channel.send(report)

    def does_known_work(self, members: list[Member]) -> bool:
        """Return whether a user model still does the work of its first calls; if not, all cells have failed."""
        if not self.user_model or not members:
            return True
        self.channel.phase(members[0].cell, "outputs")
        cells = list({member.cell.id: member.cell for member in members}.values())
        with self.context.reporting(cells) as trouble:
            subject = user_model_reference.subject_of(members[0].step)
            user_model_reference.refuse_other_work(subject, self.workload.parity_calls)
        return not trouble

    def report(self, member: Member, noise: Noise) -> Report:
        self.refuse_outside(member)
        variant, captured = member.variant, member.step.capture()
        before, after = variant.compilations_before, captured.compilations
        since = None if before is None or after is None else after - before
        return Report(
            cell=variant.name,
            prepare_s=member.prepare_s,
            build_s=member.build_s,
            load_s=member.load_s,
            artefact_bytes=member.artefact_bytes,
            first_call_s=variant.first_call_s,
            warmup_calls=variant.warmup_calls,
            steady=variant.steady,
            calls_per_sample=variant.calls_per_sample,
            samples=tuple(variant.samples),
            host_loop_s=tuple(variant.loops),
            full_speed_s=self.context.full_speed_s,
            single_calls_s=tuple(variant.single_calls),
            parts_s=tuple(variant.parts_s),
            timed_s=variant.wall_seconds,
            cpu_per_wall=self.per_rank(member, variant.cpu_per_wall),
            recompilations=max(since or 0, captured.recompilations) if captured.recompilations else since,
            compiles=self.compiles(member),
            capture=captured,
            compiler=self.compilers[member.cell.id],
            compiler_start_s=self.compiler_start(member.cell),
            peak_memory_bytes=member.peak_bytes,
            noise=noise,
            latency_sync_s=variant.waited_s,
            host_s=variant.host_s,
            device_s=self.device_seconds(member),
            position=self.position,
            user_model=self.of_user(member),
            energy=self.energy.get(variant.name),
            communication=self.communication(member),
            outputs=None if self.group.settled else self.save_outputs(member.step, self.group.inputs),
        )

    def compiles(self, member: Member) -> bool | None:
        """Return whether warm eager mode compiles or traces in every call; None where it is not known."""
        cell, count = member.cell, self.adapter.compiled_so_far
        if self.context.description.mode(cell.mode).graph or self.group.settled or cell.ranks > 1 or count() is None:
            return None
        self.channel.phase(cell, "compilations")
        for _ in range(WATCHED_CALLS):
            member.step.get_ready()
            before = count()
            self.adapter.synchronize(member.step())
            if count() == before:
                return False
        return True

    def per_rank(self, member: Member, cores: float | None) -> float | None:
        """Return the busy cores per rank of this process."""
        held = member.cell.ranks // self.adapter.processes(member.cell)
        return None if cores is None else cores / held

    def time_submission(self, member: Member) -> None:
        """Measure the host's time to submit a warm mode's call; use the shortest samples if it limits the rate."""
        variant, step = member.variant, member.step
        if variant.synchronize_each_call or member.cell.device_kind == "cpu":  # a synchronized call hides nothing
            return
        with self.context.on_fast_cpus(member.cell) as settle:
            if settle:
                settle()
            if isinstance(step, RankedStep):
                variant.waited_s, variant.host_s = step.submission()
            else:
                variant.waited_s, variant.host_s = gpu_figures.submission(self.adapter, step, self.context.clocks)
        shorten_samples(variant, self.profile)

    def device_seconds(self, member: Member) -> float | None:
        """Return the device's busy seconds in a call, measured apart from the samples to disturb none."""
        if member.cell.device_kind == "cpu" or member.cell.ranks > 1:
            return None
        self.channel.phase(member.cell, "device time")
        meter = None if self.group.settled else self.adapter.meter(member.cell)  # which starts a profiler
        return gpu_figures.device_seconds(meter, member.step, member.variant.samples[-1])

    def communication(self, member: Member) -> Communication | None:
        """Return the time of communication between ranks, once per group; None with one rank."""
        if member.cell.ranks == 1 or self.group.settled:
            return None
        if not isinstance(member.step, RankedStep):
            return Communication(problem="all ranks are in one process")
        self.channel.phase(member.cell, "communication")
        return member.step.communication()

    def save_outputs(self, step: Step, inputs: str) -> str:
        """Save the steady mode's outputs of the first calls on the file's inputs; return the path of the outputs."""
        values: dict[str, Any] = {}  # arrays by name
        counts = padding_of(inputs, self.workload.padding)
        for index in range(self.workload.parity_calls):
            if index in (0, self.workload.restart):
                step.rewind(index)
            output = step()
            self.adapter.synchronize(output)
            arrays = without_padding(self.on_host(step)(output), counts.get(index))
            kind = None if step.user_model else np.float32
            values |= {f"{index}.{name}": sampled(v, kind) for name, v in arrays.items()}
        if isinstance(step, RankedStep):
            step.check_parameters()
        folder = Path(self.context.job.folder) / OUTPUTS
        with writing.suite_file(folder):
            number = len(list(folder.iterdir()))
        return writing.save(folder / f"{number}.npz", values)

    def on_host(self, step: Step) -> Callable[[Any], dict[str, np.ndarray]]:
        """Return a function that fetches an output of this step as arrays by name."""
        subject = step.user_model
        return self.adapter.to_numpy if subject is None else lambda output: subject.compared(output).arrays

    def unseen(self, member: Member) -> Unseen | None:
        """Return the cost of the first call at another shape, once the mode is warm, and its latency from then on.

        None if no such shape is requested.
        """
        other = self.group.unseen
        if not other or member.variant.name != member.cell.id:
            return None
        self.channel.phase(member.cell, "unseen shape")
        step = member.step.rebound([self.adapter.place(member.cell, arrays) for arrays in load_inputs(other.inputs)])
        before, outside = member.variant.compilations(), step.capture().calls_outside
        variant = replace(member.variant, step=step, get_ready=step.get_ready if step.fresh else None)
        try:
            first_call(variant, self.context.clocks)
            after = member.variant.compilations()
            compiled = None if before is None or after is None else after - before
            time_calls(variant, CALLS_TO_CAPTURE, self.context.clocks)
            steady = time_calls(variant, variant.calls_per_sample, self.context.clocks)
            outputs = self.save_outputs(step, other.inputs)
        except Exception as error:  # the mode's answer to another shape, not a failure of the cell
            writing.check_room(self.context.job.folder)
            return Unseen(other.seq_len, problem=in_a_line(error, 300))
        if step.capture().calls_outside > outside:
            return Unseen(other.seq_len, problem="Calls of this length run no graph: they run eager mode's code.")
        return Unseen(
            other.seq_len,
            first_call_s=variant.first_call_s,
            latency_s=steady,
            compilations=compiled,
            outputs=outputs,
        )
