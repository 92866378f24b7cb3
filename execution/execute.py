"""Run a plan: processes, retries without the culprit when a worker dies, and the remains of an interruption."""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import frameworks
from execution import artefacts, bounds, cluster, peak_benchmarks, stopping, turns, unchanged
from execution.launcher import Launcher, Waiting, changed_since
from execution.peak_benchmarks import Kept
from execution.recorder import Recorder
from execution.slots import Service, Slot, serve
from execution.time_breakdown import TimeBreakdown
from execution.worker_run import Display, Figure, Figures, WorkerRun
from launchers import local
from measurement import host
from measurement.cells import PEAK_PREFIX
from measurement.checked import Misfit, data_of, read
from measurement.profiles import Profile
from measurement.protocol import MEASURE, PRIME, Ended, Hello, Job, Phase, Profiled, Progress, Provisional
from measurement.refusals import UsageError
from plan.plan import Bundle, Group, Plan, estimated_seconds, profiled
from plan.sweep import Sweep
from records import assemble, foreign, jsonfiles
from records.cell_result import CellResult, Failure, full_speed_s
from records.cell_result import Kept as KeptReport
from records.manifest import NODES
from records.runs import VERSIONS, Run, utc_now

MOST_EXCUSED = 5  # processes in a row that lost their files, because something keeps deleting them
RARELY = 50.0  # multiple of the time to write the CSV that passes before slots write it again


@dataclass
class Executor:
    """Runs the bundles of a plan: one after another, or side by side in slots."""

    launcher: Launcher
    recorder: Recorder
    display: Display
    breakdown: TimeBreakdown = field(default_factory=TimeBreakdown)
    kept: dict[str, list[KeptReport]] = field(default_factory=dict)  # by cell: reports of an interrupted run
    slots: tuple[Slot, ...] = ()
    control: Group | None = None  # the cell that every node of a cluster measures once
    controlled: set[str] = field(default_factory=set)  # the nodes that have measured it
    ready: Callable[[], None] = lambda: None  # waits until nothing disturbs a measurement
    early: int = 0  # workers of the plan's only bundle that may start while eager mode is profiled
    tried: set[str] = field(default_factory=set)  # eager mode's cells whose profile was tried

    @property
    def run(self) -> Run:
        return self.launcher.run

    @property
    def sweep(self) -> Sweep:
        return self.launcher.sweep

    @property
    def profile(self) -> Profile:
        return self.launcher.profile

    def execute(self, plan: Plan, finished: frozenset[str]) -> None:
        """Run the plan; every planned cell without a record gets one.

        Write the CSV after each window of bundles that take turns; with slots after bundles, but not too often.
        """
        self.begin(plan, finished)
        if self.slots:
            run_side_by_side(self, plan.bundles)
        else:
            self.run_in_turn(plan.bundles)
        self.end()

    def run_in_turn(self, bundles: Sequence[Bundle]) -> None:
        """Run bundles whose processes take turns, so that a cell's processes are as far apart as the profile requires.

        The machine hardly changes between consecutive processes, but may within an hour.
        """
        estimates = {
            b.first.id: estimated_seconds(b, self.profile, self.sweep.compile_cache, self.sweep.energy) for b in bundles
        }
        for together in turns.windows(bundles, estimates, self.profile.spread_seconds):
            turns.alternate(map(self.steps, together))
            self.run.write_csv()

    @property
    def facts(self) -> dict[str, Any]:
        """Return the facts that a resumed run must share to reuse compiled code and profiles; empty if none are kept.

        Slots and changed checkouts keep none, nor do folders outside `results/`, where somebody else may have put code.
        """
        context = self.recorder.context
        if not self.launcher.slot.alone or context.code is None or not foreign.is_own(self.run.folder):
            return {}
        machine, versions = context.machine_id, self.run.read(VERSIONS)
        return {"run": self.run.id, "machine": machine, "code": context.code, "versions": versions}

    def begin(self, plan: Plan, finished: frozenset[str]) -> None:
        """Write the plan's files before any process, and take over the reports of an interrupted run."""
        groups = [group for bundle in plan.bundles for group in bundle.groups]
        weights = self.launcher.reference_data(groups[0]).weights_name if groups else f"seed:{self.sweep.seed}"
        self.recorder.write_impossible(plan, finished, weights)
        facts = self.facts
        caches = (self.run.folder / "processes").glob("cache*")
        unusable = [left for left in caches if not (facts and artefacts.restore(left, facts))]
        for left in (*unusable, self.launcher.bytecode):
            shutil.rmtree(left, ignore_errors=True)
            if left.exists():  # otherwise workers would run the compiled code in it
                raise UsageError(f"{left} cannot be removed: delete it, then try again.")
        self.take_over_reports(facts.get("code"))

    def take_over_reports(self, code: str | None) -> None:
        """Use the reports of an interrupted run, and eager mode's profiles by the same `code`.

        A signal or a kill between the two lines of a report leaves it without samples: these are added.
        """
        written = {(line["cell"], line.get("worker")) for line in self.run.samples()}
        for entry in self.run.kept_reports():
            with contextlib.suppress(Misfit):  # an unusable report is measured again
                kept = read(KeptReport, entry)
                if kept.busy_s is None:
                    self.kept.setdefault(kept.cell, []).append(kept)
                elif kept.code == code:
                    self.recorder.busy[kept.cell] = kept.busy_s
                for line in kept.samples:
                    if (line["cell"], line["worker"]) not in written:
                        self.run.append_samples(line)

    def end(self) -> None:
        """Write the table and remove kept reports: every cell has its record, so nothing is left to resume."""
        self.run.write_csv()
        self.run.drop_reports()

    def steps(self, bundle: Bundle) -> Generator[int, None, None]:
        """Run a bundle in steps: yield each process's number before it, so that another executor's process may run.

        A KeyboardInterrupt thrown there writes the settled groups, as Ctrl-C during a process does.
        """
        results = {cell.id: CellResult(cell, utc_now()) for group in bundle.groups for cell in group.cells}
        for result in results.values():
            for entry in self.kept.pop(result.cell.id, ()):
                result.take_over(entry, self.launcher.slot.node)
        if obstacle := self.launcher.obstacle(bundle):
            for result in results.values():
                result.failure = obstacle
        else:
            try:
                yield from self.processes(bundle, results)
            except (KeyboardInterrupt, local.SlotFailure):
                self.finish_settled(bundle, results)
                raise
        for group in bundle.groups:
            self.recorder.finish(group, results)
        self.display.bundle_done(bundle)

    def rest_of(self, bundle: Bundle) -> Bundle | None:
        """Return the groups of a bundle that have no records yet; None if there are none."""
        left = tuple(group for group in bundle.groups if group not in self.recorder.written)
        return Bundle(left) if left else None

    def measure_control(self) -> None:
        """Measure the control cell, unless this slot's node has measured it."""
        node = self.launcher.slot.node
        if self.control and node and node not in self.controlled:
            self.controlled.add(node)
            try:
                control = cluster.measured_control(self.launcher, self.control)
            except local.SlotFailure:
                self.controlled.discard(node)
                raise
            jsonfiles.append(self.run.folder / NODES, control, synced=True)

    def give_up(self, bundle: Bundle, failure: Failure) -> None:
        """Write the records of a bundle that cannot be measured."""
        results = {c.id: CellResult(c, utc_now(), failure=failure) for group in bundle.groups for c in group.cells}
        for group in bundle.groups:
            self.recorder.finish(group, results)
        self.display.bundle_done(bundle)

    def finish_settled(self, bundle: Bundle, results: dict[str, CellResult]) -> None:
        """Write the groups that need no further process."""
        for group in bundle.groups:
            members = [results[cell.id] for cell in group.cells]
            last = max((report.process for result in members for report in result.reports), default=-1)
            reported = all(result.failure or result.has_report(last) for result in members)
            if reported and stopping.unfinished(group, results, last + 1, self.profile) is None:
                self.recorder.finish(group, results)

    def run_processes(self, bundle: Bundle, results: dict[str, CellResult]) -> None:
        """Run all processes of a bundle."""
        for _ in self.processes(bundle, results):
            pass

    def processes(self, bundle: Bundle, results: dict[str, CellResult]) -> Iterator[int]:
        """Run as many processes as the profile requires. They share a compile cache, which is empty before the first.

        So the first process measures the cost of compiling, and the others load its code, if the framework stores
        compiled code on disk. They save no outputs and list no programs if an earlier process did. With a `warm` cache
        a process without measurements fills it beforehand. A resumed run uses the cache of the last complete process,
        unless the first process did not measure some groups.
        """
        cache = self.launcher.cache_of(bundle.first)
        begins = any(stopping.unfinished(group, results, 0, self.profile) for group in bundle.groups)
        if begins:
            shutil.rmtree(cache, ignore_errors=True)
        waiting: list[Waiting] = []
        try:
            if begins and self.sweep.compile_cache != "warm" and self.unbounded(bundle):
                self.start_early(bundle, waiting)
            self.prepare_device(bundle)
            self.breakdown.enter("start")
            if not all(worker.is_ready() for worker in waiting):
                stop(waiting)
                shutil.rmtree(cache, ignore_errors=True)  # one that died may have written half a file
            if self.sweep.compile_cache == "warm" and not cache.exists():
                self.process(bundle, list(bundle.groups), results, PRIME)
            for number in range(self.profile.most_processes):
                asked = (stopping.unfinished(group, results, number, self.profile) for group in bundle.groups)
                groups = [left for left in asked if left]
                if groups:  # else an interrupted run has this process, or the intervals are narrow enough
                    yield number
                    self.process(bundle, groups, results, MEASURE, number, waiting)
                    if cache.exists() and (facts := self.facts):
                        artefacts.seal(cache, facts)
                    self.display.process_done(bundle)
                    for group in groups if number else ():
                        self.display.figures(number, figures_of(group, results))
            (cache / artefacts.MANIFEST).unlink(missing_ok=True)
        finally:
            stop(waiting)
            if not (cache / artefacts.MANIFEST).exists():  # else a resumed run uses it
                shutil.rmtree(cache, ignore_errors=True)

    def unbounded(self, bundle: Bundle) -> list[Group]:
        """Return eager mode of the groups whose bounds a profile can find, and none has been tried."""
        known = self.recorder.busy.keys() | self.tried
        return [group for group in profiled(bundle.groups) if group.cells[0].id not in known]

    def start_early(self, bundle: Bundle, waiting: list[Waiting]) -> None:
        """Start workers for the bundle's first processes, and add them to `waiting`: they import meanwhile."""
        self.breakdown.enter("start")
        for number in range(self.early):
            folder = self.run.new_process_folder()
            job = self.launcher.job(MEASURE, bundle.groups, folder, number, waits=True)
            unchanged.check_files(job.user_models)
            start = self.launcher.start_of(bundle.first, folder, self.launcher.cache_of(bundle.first))
            with contextlib.suppress(local.WorkerFailure):  # a process without a waiting worker starts one
                waiting.append(self.launcher.waiting(start, job))

    def prepare_device(self, bundle: Bundle) -> None:
        """Profile eager mode, before a process compiles the model, and wait until nothing disturbs a measurement."""
        if groups := self.unbounded(bundle):
            self.find_bounds(groups)
        self.ready()

    def find_bounds(self, groups: Sequence[Group]) -> None:
        """Profile eager mode of these groups."""
        self.breakdown.enter("profile")
        self.display.phase(groups[0].cells[0].id, "profile")
        for cell, answer, device_name in bounds.answers(self.launcher, groups):
            self.tried.add(cell.id)
            if isinstance(answer, Profiled):
                self.recorder.busy[cell.id] = answer.busy_s
                if facts := self.facts:
                    kept_here = KeptReport(cell.id, busy_s=answer.busy_s, code=facts["code"])
                    self.run.keep_report(data_of(kept_here))
            kept = self.recorder.kept_peaks(cell)
            peaks = self.recorder.peaks.get(peak_benchmarks.key(cell)) or (kept.peaks if kept else None)
            self.display.bound(cell.id, bounds.sentence(cell, answer, device_name, peaks))
        self.breakdown.enter("records")

    def process(
        self,
        bundle: Bundle,
        groups: list[Group],
        results: dict[str, CellResult],
        kind: str,
        number: int = 0,
        waiting: list[Waiting] | None = None,
    ) -> None:
        """Run one process of `groups`; if a worker dies, run it again without the culprit.

        The first of `waiting` is taken, if any. Those that wait have memory of the device, so a process that fails
        meanwhile is run again alone.
        """
        waiting = [] if waiting is None else waiting
        for cell in [cell for group in groups if kind == MEASURE for cell in group.cells]:
            results[cell.id].forget(number)  # half of a group, from before an interruption
        excused, cache = 0, self.launcher.cache_of(bundle.first)
        while groups:
            folder = waiting[0].start.folder if waiting else self.run.new_process_folder()
            self.display.bundle(bundle, number)
            peak_benchmarks = self.recorder.peak_benchmarks(bundle.first) if kind == MEASURE else ()
            # A cell of the sweep may be the same as a peak benchmark.
            results |= {PEAK_PREFIX + g.cells[0].id: CellResult(g.cells[0], utc_now()) for g in peak_benchmarks}
            settled = [group for group in groups if all(results[cell.id].compared for cell in group.cells)]
            kept = self.recorder.kept_peaks(bundle.first) if peak_benchmarks else None
            versions = kept.versions if kept else None
            full_s = full_speed_s([report for result in results.values() for report in result.reports])
            job = self.launcher.job(kind, groups, folder, number, peak_benchmarks, settled, versions, full_s)
            worker_run = WorkerRun(folder, number, results, peak_benchmarks, crowded=len(waiting) > 1)
            failure = self.run_worker(worker_run, job, waiting, bundle, kept)
            self.recorder.note_peaks(bundle.first, peak_benchmarks, results)
            left = [rest for group in groups if (rest := group.without(worker_run.done))]
            if not left:
                return
            stop(waiting)
            shutil.rmtree(cache, ignore_errors=True)  # a process that died may have written half a file
            if worker_run.crowded:
                groups = left
                continue
            # A first death at the start need not be the framework's fault, and no cell is to blame for deleted files.
            if (worker_run.died_at_start and not excused) or (worker_run.lost_files() and excused < MOST_EXCUSED):
                excused, groups = excused + 1, left
                continue
            culprits = worker_run.culprits(left)
            for cell_id in culprits:
                results[cell_id].failure, results[cell_id].failed_step = failure, worker_run.step
            groups = [rest for group in left if (rest := group.without(culprits))]

    def messages(
        self, worker_run: WorkerRun, start: local.Launch, job: Job, waiting: list[Waiting]
    ) -> Iterator[dict[str, Any]]:
        """Yield the messages of a worker on its job; the first of `waiting` gets it now, if any."""
        unchanged.check_files(job.user_models)
        since = changed_since(job)
        if not waiting:
            worker_run.lost_files = since
            yield from self.launcher.messages(start, job)
            return
        worker = waiting.pop(0)
        worker_run.lost_files = lambda: worker.changed() or since()
        with contextlib.closing(worker.messages) as messages:
            worker.give(job)
            yield from worker.began
            yield from messages

    def run_worker(
        self, worker_run: WorkerRun, job: Job, waiting: list[Waiting], bundle: Bundle, kept: Kept | None
    ) -> Failure:
        """Run one worker to its end; return the failure of the cells that it did not report.

        Groups of the bundle are written as they finish.
        """
        awaits_peaks = bool(worker_run.peak_benchmarks)  # records contain them
        cache = self.launcher.cache_of(bundle.first)
        start = waiting[0].start if waiting else self.launcher.start_of(bundle.first, worker_run.folder, cache)
        try:
            self.breakdown.enter("start")
            for data in self.messages(worker_run, start, job, waiting):
                message = worker_run.take(data)
                if isinstance(message, Phase):
                    self.breakdown.enter(message.phase)
                    self.display.phase(message.cell, message.phase)
                elif isinstance(message, Progress):
                    self.display.progress(message.rounds, message.seconds)
                elif isinstance(message, Provisional):
                    self.display.figures(0, {message.cell: Figure(message.seconds, message.speedup, message.slowed)})
                elif isinstance(message, Hello):
                    unchanged.note_versions(self.run, bundle.first, message.installed)
                    if kept and message.versions == kept.versions:
                        self.recorder.take_peaks(bundle.first, kept.peaks)
                        awaits_peaks = False
                self.keep(worker_run)
                if not awaits_peaks and (message is None or isinstance(message, Ended)):
                    self.finish_settled(bundle, worker_run.results)
        except local.SlotFailure:
            raise
        except local.WorkerFailure as error:
            return Failure(error.status, f"{error}{local.crash_place(start.log)}", local.log_tail(start.log))
        finally:
            self.breakdown.enter("records")
        return Failure("crash", "The worker ended without reporting this cell.", local.log_tail(start.log))

    def keep(self, worker_run: WorkerRun) -> None:
        """Save a worker's reports and samples so far. An interrupted run's `begin` writes samples that are missing."""
        while worker_run.kept:
            kept = worker_run.kept.pop(0)
            self.run.keep_report(data_of(kept))
            for entry in kept.samples:
                self.run.append_samples(entry)


def stop(waiting: list[Waiting]) -> None:
    """End the workers that wait."""
    while waiting:
        waiting.pop().messages.close()


def figures_of(group: Group, results: dict[str, CellResult]) -> Figures:
    """Return the latency in s and the speedup of a group's cells over the processes so far."""
    known = [result for cell in group.cells if (result := results[cell.id]).reports and not result.failure]
    baseline = next((result for result in known if frameworks.is_baseline(result.cell)), None)
    figures = {}
    for result in known:
        ratio, good = None, result.good_turns
        if baseline and result is not baseline:
            ratio, good = assemble.speedup(result, baseline), assemble.good_rounds(result, baseline)
        _, slowed = host.counting(good)
        figures[result.cell.id] = Figure(result.latency_s, ratio.value if ratio else None, slowed)
    return figures


def run_side_by_side(executor: Executor, bundles: Sequence[Bundle]) -> None:
    """Run the bundles in the executor's slots; add each slot's time to the executor's breakdown."""
    breakdowns: dict[int, TimeBreakdown] = {}
    next_csv = 0.0

    def in_slot(slot: Slot) -> Executor:
        breakdown = breakdowns.setdefault(slot.number, TimeBreakdown())
        launcher, recorder = replace(executor.launcher, slot=slot), executor.recorder.in_slot(slot)
        return replace(executor, launcher=launcher, recorder=recorder, breakdown=breakdown)

    def work(slot: Slot, bundle: Bundle) -> None:
        nonlocal next_csv
        its = in_slot(slot)
        its.breakdown.enter("records")
        its.measure_control()
        turns.alternate([its.steps(bundle)])
        if (start := time.monotonic()) >= next_csv:  # writing it reads all records again
            executor.run.write_csv()
            next_csv = time.monotonic() + RARELY * (time.monotonic() - start)
        its.breakdown.enter("no process left")

    def give_up(slot: Slot, bundle: Bundle, why: str) -> None:
        in_slot(slot).give_up(bundle, Failure("crash", why))

    try:
        serve(bundles, executor.slots, Service(work, executor.rest_of, give_up))
    finally:
        executor.breakdown.absorb(breakdowns.values())
