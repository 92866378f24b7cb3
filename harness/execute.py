"""Run a plan: launch workers, survive what happens to them, and write one record for every cell."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import frameworks
import workloads
from frameworks import policies
from harness import assemble, yardsticks
from harness.attempt import Attempt, Display
from harness.comparison import References
from harness.lanes import ALONE, Lane, run_side_by_side
from harness.ledger import Ledger
from harness.materials import Materials
from harness.outcomes import Context, Failure, Outcome
from harness.plan import Bundle, Group, Plan, at_unseen_length, baseline_of
from harness.runs import Run, utc_now
from harness.sweep import Sweep
from launchers import local
from measurement.cells import YARDSTICK_PREFIX, Cell
from measurement.machine import allotted_cpus, cpu_assignment
from measurement.peaks import Peaks
from measurement.profiles import Profile


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
    kept: dict[str, list[dict]] = field(default_factory=dict)  # by cell: what an interrupted run knew already
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
            self.kept.setdefault(entry["cell"], []).append(entry)
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
        self.references.check(group, outcomes, self.materials, self.sweep.unseen_seq)
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
                self.launch(bundle, list(bundle.groups), outcomes, cache, launch=None)
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
        baseline = outcomes.get(baseline_of(left.cells[0]).id)
        graphs = [outcomes[cell.id] for cell in left.cells if not frameworks.is_baseline(cell)]
        if baseline and not baseline.failure and graphs:
            intervals = [assemble.speedup(graph, baseline) for graph in graphs]
        else:
            intervals = [outcomes[cell.id].latency for cell in left.cells]
        width = max(interval.relative_half_width if interval else float("inf") for interval in intervals)
        return left if self.profile.stop_early and width > self.profile.target_half_width else None

    def launch(self, bundle, groups: list[Group], outcomes, cache: Path, launch: int | None) -> None:
        """One launch of `groups`, begun again without the culprit when a worker dies; None is the priming launch."""
        for cell in [cell for group in groups for cell in group.cells]:
            outcomes[cell.id].forget(launch)  # half of a group, known from before an interruption
        while groups:
            folder = self.run.new_launch()
            self.display.bundle(bundle, launch or 0)
            attempt = Attempt(folder, launch, outcomes)
            measures = () if launch is None else self.yardsticks(bundle.first, outcomes)
            failure = self.attempt(
                attempt,
                self.local_launch(bundle.first, folder, cache),
                self.job(groups, measures, folder, launch),
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

    def attempt(self, attempt: Attempt, launch: local.Launch, job: dict, settled: Bundle | None) -> Failure:
        """Run one worker to its end; how it failed the cells it left out. Writes groups of `settled` as they finish."""
        try:
            self.ledger.enter("start")
            for message in self.lane.messages(launch, job):
                if message["type"] == "phase":
                    self.ledger.enter(str(message.get("phase")))
                attempt.handle(message, self.display)
                if message["type"] == "hello":
                    self.run.note_versions(job, message.get("installed"))
                while attempt.samples:
                    self.run.append_samples(attempt.samples.pop(0))
                while attempt.kept:
                    self.run.keep_report(attempt.kept.pop(0))
                if settled and message["type"] == "cell":
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

    def job(self, groups: list[Group], measures: tuple[Group, ...], folder: Path, launch: int | None) -> dict:
        def described(group: Group) -> dict:
            data = self.materials(group)
            unseen = at_unseen_length(group, self.sweep.unseen_seq)
            cells = [cell.to_json() for cell in group.cells]
            controls = [asdict(control) for control in group.controls]
            return {
                "cells": cells,
                "controls": controls,
                "weights": str(data.weights),
                "inputs": str(data.inputs),
                "unseen": {"inputs": str(self.materials(unseen).inputs), "seq_len": self.sweep.unseen_seq}
                if unseen
                else None,
            }

        return {
            "framework": groups[0].cells[0].framework,
            "groups": [described(group) for group in groups],
            "yardsticks": [described(group) for group in measures],
            "profile": self.profile.to_json(),
            "launch": launch,
            "seed": self.sweep.seed,
            "marker": str(folder / "marker"),
            "outputs": str(folder / "outputs"),
            "force": self.sweep.force,
            "own_cpus": list(self.lane.cpus) or allotted_cpus(),
        }

    def write(self, wanted: list[Outcome], outcomes: dict[str, Outcome], weights: str) -> None:
        for outcome in wanted:
            baseline = outcomes.get(baseline_of(outcome.cell).id)
            if baseline is not None and not (baseline.comparable and outcome.comparable):
                baseline = None
            workload = workloads.get(outcome.cell.workload, outcome.cell.pass_name)
            peaks = self.peaks.get(yardsticks.key(outcome.cell))
            row = assemble.record(outcome, baseline, workload, weights, peaks, self.context)
            self.run.append_record(row)
            self.display.record(row)
