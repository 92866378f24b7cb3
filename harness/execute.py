"""Run a plan: launch workers, survive what happens to them, and write one record for every cell."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import frameworks
import workloads
from frameworks import policies
from harness import assemble, yardsticks
from harness.attempt import Attempt, Display
from harness.comparison import References
from harness.lanes import ALONE, Lane, serve
from harness.ledger import Ledger
from harness.materials import Materials
from harness.outcomes import Context, Failure, Kept, Outcome
from harness.plan import Bundle, Group, Plan, at_unseen_length
from harness.runs import Run, utc_now
from harness.sweep import Sweep
from launchers import local
from measurement.cells import YARDSTICK_PREFIX, Cell
from measurement.checked import Misfit, data_of, read
from measurement.machine import allotted_cpus, cpu_assignment, cpu_shares
from measurement.peaks import Peaks
from measurement.profiles import Profile
from measurement.protocol import MEASURE, PRIME, Ended, GroupJob, Hello, Job, OtherShape, Phase, Progress


@dataclass
class Executor:
    """Runs the bundles of a plan: one after the other, or where the sweep says so side by side, a lane for each GPU."""

    run: Run
    sweep: Sweep
    profile: Profile
    context: Context
    display: Display
    interpreters: dict[tuple[str, str], Path | Failure]  # by framework and kind of device
    materials: Callable[[Group], Materials]
    timeout_s: float
    with_peaks: bool = True
    peaks: dict[str, Peaks] = field(default_factory=dict)  # by yardsticks.key
    references: References = field(default=None)  # those of the run
    kept: dict[str, list[Kept]] = field(default_factory=dict)  # by cell: what an interrupted run knew already
    written: set[Group] = field(default_factory=set)
    ledger: Ledger = field(default_factory=Ledger)
    lane: Lane = ALONE  # where this one runs its launches; those of other lanes share all of the above but the ledger

    def __post_init__(self) -> None:
        self.references = self.references or References(self.run)

    def execute(self, plan: Plan, finished: frozenset[str]) -> None:
        """Run everything; every planned cell without a record gets one. The CSV is made anew after each bundle."""
        groups = [group for bundle in plan.bundles for group in bundle.groups]
        weights = self.materials(groups[0]).weights_name if groups else f"seed:{self.sweep.seed}"
        for cell in plan.cells:
            if cell.id in plan.impossible and cell.id not in finished:
                outcome = Outcome(cell, utc_now(), failure=Failure("unsupported", plan.impossible[cell.id]))
                self.write([outcome], {}, weights)
        self.peaks = {name: Peaks(**values) for name, values in self.run.read("peaks.json").items()}
        for left in (self.run.folder / "launches").glob("cache*"):  # by a run that was killed
            shutil.rmtree(left, ignore_errors=True)
        for entry in self.run.kept_reports():
            with contextlib.suppress(Misfit):  # what cannot be used is measured again
                kept = read(Kept, entry)
                self.kept.setdefault(kept.cell, []).append(kept)
        if self.sweep.gpus:
            run_side_by_side(self, plan.bundles)
        else:
            for bundle in plan.bundles:
                self.run_bundle(bundle)
                self.run.write_csv()
        self.run.write_csv()
        self.run.drop_reports()

    def run_bundle(self, bundle: Bundle) -> None:
        """All launches of a bundle, then its records."""
        outcomes = {cell.id: Outcome(cell, utc_now()) for group in bundle.groups for cell in group.cells}
        for outcome in outcomes.values():
            for entry in self.kept.pop(outcome.cell.id, ()):
                outcome.take_over(entry)
        broken = self.interpreters[bundle.first.framework, bundle.first.device_kind]
        if isinstance(broken, Failure):
            for outcome in outcomes.values():
                outcome.failure = broken
        else:
            try:
                self.run_launches(bundle, outcomes)
            except KeyboardInterrupt:
                self.finish_settled(bundle, outcomes)
                raise
        for group in bundle.groups:
            self.finish(group, outcomes)
        self.display.bundle_done(bundle)

    def finish_settled(self, bundle: Bundle, outcomes: dict[str, Outcome]) -> None:
        """Write the groups to which no launch has anything to add."""
        last = self.profile.maximum_launches - 1
        for group in bundle.groups:
            found = [outcomes[cell.id] for cell in group.cells]
            if all(outcome.failure or outcome.has_report(last) for outcome in found):
                self.finish(group, outcomes)

    def finish(self, group: Group, outcomes: dict[str, Outcome]) -> None:
        """Write the records of a group, once."""
        if group in self.written:
            return
        self.written.add(group)
        try:
            self.references.check(group, outcomes, self.materials, self.sweep.unseen_seq)
        except Exception as error:  # one group's trouble is not the run's
            for cell in group.cells:
                outcomes[cell.id].failure = outcomes[cell.id].failure or Failure.over(error)
        wanted = [outcomes[cell.id] for cell in group.cells if cell.id in group.wanted]
        self.write(wanted, outcomes, self.materials(group).weights_name)

    def run_launches(self, bundle: Bundle, outcomes: dict[str, Outcome]) -> None:
        """As many launches as the profile wants. They share a compile cache, which is empty before the first one.

        So the first launch shows what compiling costs and the others load what it compiled, where the framework keeps
        compiled code on disk. With the sweep's cache `warm` a launch that measures nothing fills it beforehand.
        """
        cache = self.run.folder / "launches" / ("cache" if self.lane.alone else f"cache-{self.lane.number}")
        try:
            if self.sweep.compile_cache == "warm":
                self.launch(bundle, list(bundle.groups), outcomes, cache, 0, PRIME)
            for launch in range(self.profile.maximum_launches):
                groups = [left for group in bundle.groups if (left := self.unfinished(group, outcomes, launch))]
                if groups:  # else an interrupted run knew this launch, or the intervals are narrow enough
                    self.launch(bundle, groups, outcomes, cache, launch)
        finally:
            shutil.rmtree(cache, ignore_errors=True)

    def unfinished(self, group: Group, outcomes: dict[str, Outcome], launch: int) -> Group | None:
        """What of a group the next launch has to measure, if anything.

        With `stop_early` it needs none once the speedups are known well; without eager beside them, the latencies.
        """
        left = group.without({cell.id for cell in group.cells if outcomes[cell.id].failure})
        if left and all(outcomes[cell.id].has_report(launch) for cell in left.cells):
            return None  # before the run was interrupted
        if left is None or launch < self.profile.minimum_launches:
            return left
        baseline = outcomes.get(f"{left.cells[0].group_id}/eager")
        graphs = [outcomes[cell.id] for cell in left.cells if cell.mode != "eager"]
        if baseline and not baseline.failure and graphs:
            intervals = [assemble.speedup(graph, baseline) for graph in graphs]
        else:
            intervals = [outcomes[cell.id].latency for cell in left.cells]
        width = max(interval.relative_half_width if interval else float("inf") for interval in intervals)
        return left if self.profile.stop_early and width > self.profile.target_half_width else None

    def launch(self, bundle, groups: list[Group], outcomes, cache: Path, launch: int, kind: str = MEASURE) -> None:
        """One launch of `groups`, begun again without the culprit when a worker dies."""
        for cell in [cell for group in groups if kind == MEASURE for cell in group.cells]:
            outcomes[cell.id].forget(launch)  # half of a group, known from before an interruption
        while groups:
            folder = self.run.new_launch()
            self.display.bundle(bundle, launch)
            attempt = Attempt(folder, launch, outcomes)
            measures = self.yardsticks(bundle.first, outcomes) if kind == MEASURE else ()
            failure = self.attempt(
                attempt,
                self.local_launch(bundle.first, folder, cache),
                self.job(kind, groups, measures, folder, launch),
                None if measures else bundle,  # records tell the peaks, which are measured last
            )
            self.note_peaks(bundle.first, measures, outcomes)
            left = [rest for group in groups if (rest := group.without(attempt.done))]
            if not left:
                return
            shutil.rmtree(cache, ignore_errors=True)  # a process that died may have left half of a file there
            culprits = attempt.culprits(left)
            for cell_id in culprits:
                outcomes[cell_id].failure = failure
            groups = [rest for group in left if (rest := group.without(culprits))]

    def yardsticks(self, cell: Cell, outcomes: dict[str, Outcome]) -> tuple[Group, ...]:
        """The yardsticks a launch has to measure as well: those of its kind, if no launch of the run has yet."""
        if not self.with_peaks or yardsticks.key(cell) in self.peaks:
            return ()
        groups = yardsticks.groups_for(cell)
        # A cell of the sweep may be the same as a yardstick.
        outcomes |= {YARDSTICK_PREFIX + group.cells[0].id: Outcome(group.cells[0], utc_now()) for group in groups}
        return groups

    def note_peaks(self, cell: Cell, groups: tuple[Group, ...], outcomes: dict[str, Outcome]) -> None:
        """Keep the peaks that a launch measured, also for a resumed run."""
        measured = [outcomes[YARDSTICK_PREFIX + group.cells[0].id] for group in groups]
        found = yardsticks.peaks_from(measured) if measured else None
        if found and yardsticks.key(cell) not in self.peaks:  # else another lane was faster: one peak for all records
            self.peaks[yardsticks.key(cell)] = found
            self.run.write("peaks.json", {name: asdict(peaks) for name, peaks in self.peaks.items()})

    def attempt(self, attempt: Attempt, launch: local.Launch, job: Job, settled: Bundle | None) -> Failure:
        """Run one worker to its end; how it failed the cells it left out. Writes groups of `settled` as they finish."""
        try:
            self.ledger.enter("start")
            for data in self.lane.messages(launch, job.to_json()):
                message = attempt.take(data)
                if isinstance(message, Phase):
                    self.ledger.enter(message.phase)
                    self.display.phase(message.cell, message.phase)
                elif isinstance(message, Progress):
                    self.display.progress(message.rounds, message.seconds)
                elif isinstance(message, Hello):
                    self.run.note_versions(job.cells[0], message.installed)
                while attempt.samples:
                    self.run.append_samples(attempt.samples.pop(0))
                while attempt.kept:
                    self.run.keep_report(data_of(attempt.kept.pop(0)))
                if settled and (message is None or isinstance(message, Ended)):
                    self.finish_settled(settled, attempt.outcomes)
        except local.WorkerFailure as error:
            return Failure(error.status, str(error), local.log_tail(launch.log))
        finally:
            self.ledger.enter("records")
        return Failure("crash", "The worker ended without a word on this cell.", local.log_tail(launch.log))

    def local_launch(self, cell: Cell, folder: Path, cache: Path) -> local.Launch:
        description = frameworks.describe(cell.framework)
        additions = description.environment(cell.threads, cell.device_kind)
        policy = cell.framework, cell.device_kind, self.sweep.policies
        additions |= policies.variables(*policy)
        additions |= {name: str(cache / name.lower()) for name in description.cache_variables}
        additions |= self.lane.environment
        return local.Launch(
            interpreter=self.interpreters[cell.framework, cell.device_kind],
            folder=folder,
            environment=local.environment(additions),
            cpus=cpu_assignment(cell.threads, exactly=policies.pinned(*policy)),
            timeout_s=self.timeout_s,
        )

    def job(self, kind: str, groups: list[Group], measures: tuple[Group, ...], folder: Path, launch: int) -> Job:
        own_cpus = self.lane.cpus or allotted_cpus()
        return Job(
            kind,
            framework=groups[0].cells[0].framework,
            groups=tuple(map(self.group_job, groups)),
            profile=self.profile,
            folder=str(folder),
            seed=self.sweep.seed,
            launch=launch,
            yardsticks=tuple(map(self.group_job, measures)),
            force=self.sweep.force,
            own_cpus=tuple(own_cpus) if own_cpus else None,
        )

    def group_job(self, group: Group) -> GroupJob:
        data, other = self.materials(group), at_unseen_length(group, self.sweep.unseen_seq)
        unseen = OtherShape(str(self.materials(other).inputs), self.sweep.unseen_seq) if other else None
        return GroupJob(group.cells, str(data.weights), str(data.inputs), group.controls, unseen)

    def write(self, wanted: list[Outcome], outcomes: dict[str, Outcome], weights: str) -> None:
        for outcome in wanted:
            baseline = outcomes.get(f"{outcome.cell.group_id}/eager")
            if baseline is not None and not (baseline.comparable and outcome.comparable):
                baseline = None
            workload = workloads.get(outcome.cell.workload, outcome.cell.pass_name)
            peaks = self.peaks.get(yardsticks.key(outcome.cell))
            try:
                row = assemble.record(outcome, baseline, workload, weights, peaks, self.context)
            except ArithmeticError as error:  # figures that are numbers and no measurement
                outcome.failure = Failure.over(error)
                row = assemble.record(outcome, None, workload, weights, peaks, self.context)
            self.run.append_record(row)
            self.display.record(row)


def run_side_by_side(executor: Executor, bundles: Sequence[Bundle]) -> None:
    """Run the bundles on the sweep's GPUs. Each lane books its own time, which then goes into the executor's ledger."""
    gpus, ledgers = executor.sweep.gpus, {}

    def work(lane: Lane, bundle: Bundle) -> None:
        context = replace(executor.context, side_by_side=lane.of, served_by=lane.served_by())
        ledger = ledgers.setdefault(lane.number, Ledger())
        ledger.enter("records")
        replace(executor, lane=lane, context=context, ledger=ledger).run_bundle(bundle)
        executor.run.write_csv()
        ledger.enter("no launch left")

    try:
        serve(bundles, gpus, cpu_shares(len(gpus)), work)
    finally:
        executor.ledger.absorb(ledgers.values())
