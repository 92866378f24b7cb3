"""Start workers for a run: the job, the process's environment and CPUs, and the messages it sends."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import frameworks
from execution.reference_data import ReferenceData
from execution.slots import ALONE, Slot
from frameworks import policies
from launchers import local
from measurement import durable
from measurement.cells import Cell
from measurement.checked import data_of
from measurement.machine import allotted_cpus, cpu_assignment
from measurement.profiles import Profile
from measurement.protocol import COMPLETE, WAITS, GroupJob, Job, OtherShape, Refused
from measurement.refusals import naming
from plan.plan import Bundle, Group, at_unseen_length, process_key
from plan.sweep import Sweep
from records.cell_result import Failure
from records.runs import Run
from workloads.user_model import is_file


@dataclass(frozen=True)
class Waiting:
    """A worker that starts and then waits for its whole job."""

    start: local.Launch
    messages: Generator[dict[str, Any], None, None]  # after `began`
    began: list[dict[str, Any]]  # messages so far
    changed: Callable[[], bool]  # whether a file of its job was changed or deleted

    def is_ready(self) -> bool:
        """Read its messages until it waits; return whether it does. One that fails is ended."""
        try:
            while self.began[-1] != WAITS.to_json():
                self.began.append(next(self.messages))
        except (local.WorkerFailure, StopIteration):
            self.messages.close()
            return False
        return True

    def give(self, job: Job) -> None:
        """Give the worker its whole job."""
        durable.replace(self.start.folder / COMPLETE, json.dumps(data_of(job)).encode())


@dataclass(frozen=True)
class Launcher:
    """Starts workers for a run and forwards their messages."""

    run: Run
    sweep: Sweep
    profile: Profile
    interpreters: dict[tuple[str, str], Path | Failure]  # by framework and kind of device
    reference_data: Callable[[Group], ReferenceData]
    timeout_s: float
    slot: Slot = ALONE  # where its workers run
    prefix: tuple[str, ...] = ()  # of every worker's command
    keeps_bytecode: bool = False  # in the run, if workers find no compiled modules and the shell forbids to store them

    def cache_of(self, cell: Cell) -> Path:
        """Return the folder of compiled code for the workers of a cell's bundle: one per bundle, or per slot."""
        key = hashlib.sha256(repr(process_key(cell, self.sweep.isolate)).encode()).hexdigest()[:8]
        return self.run.folder / "processes" / f"cache-{key if self.slot.alone else self.slot.number}"

    @property
    def bytecode(self) -> Path:
        """Return the folder of compiled Python modules for the run's workers."""
        return self.run.folder / "processes" / "bytecode"

    def obstacle(self, bundle: Bundle) -> Failure | None:
        """Return why there is no interpreter for a bundle; None if there is one."""
        interpreter = self.interpreters[bundle.first.framework, bundle.first.device_kind]
        return interpreter if isinstance(interpreter, Failure) else None

    def start_of(self, cell: Cell, folder: Path, cache: Path) -> local.Launch:
        """Return the launch of a worker for cells like this, with its files in `folder`. Raises WorkerFailure."""
        interpreter = self.interpreters[cell.framework, cell.device_kind]
        if isinstance(interpreter, Failure):
            raise local.WorkerFailure(interpreter.status, interpreter.reason)
        description = frameworks.describe(cell.framework)
        threads = cell.threads * (1 if self.sweep.places.spread > 1 else cell.ranks)
        additions = description.environment(cell.threads, cell.device_kind)
        additions |= description.devices(cell.ranks, cell.threads, cell.device_kind) if cell.ranks > 1 else {}
        policy = cell.framework, cell.device_kind, self.sweep.policies
        additions |= policies.variables(*policy)
        additions |= {name: str(cache / name.lower()) for name in description.cache_variables}
        additions |= self.slot.environment
        return local.Launch(
            interpreter=interpreter,
            folder=folder,
            environment=local.environment(additions),
            cpus=cpu_assignment(threads, exactly=policies.pinned(*policy)),
            timeout_s=self.timeout_s,
            threads=threads,
            pinned=policies.pinned(*policy),
            prefix=self.prefix,
            ranks=cell.ranks,
        )

    def job(
        self,
        kind: str,
        groups: Sequence[Group],
        folder: Path,
        number: int = 0,
        peak_benchmarks: Sequence[Group] = (),
        settled: Collection[Group] = (),
        peaks_known_of: Mapping[str, str] | None = None,
        full_speed_s: float | None = None,
        waits: bool = False,
    ) -> Job:
        """Return a worker's job; `number` is the process's, and `settled` are the groups whose outputs exist.

        A job that `waits` is not whole: it has no peak benchmarks, whose data may not exist yet.
        """
        own_cpus = self.slot.cpus or allotted_cpus()
        return Job(
            kind,
            framework=groups[0].cells[0].framework,
            groups=tuple(self._group_job(group, group in settled) for group in groups),
            profile=self.profile,
            folder=str(folder),
            seed=self.sweep.seed,
            process=number,
            peak_benchmarks=tuple(self._group_job(group, settled=True) for group in peak_benchmarks if not waits),
            peaks_known_of=dict(peaks_known_of or {}),
            force=self.sweep.force,
            own_cpus=tuple(own_cpus) if own_cpus else None,
            full_speed_s=full_speed_s,
            user_models=self.sweep.user_models,
            energy=self.sweep.energy,
            bytecode=str(self.bytecode) if self.keeps_bytecode else "",
            waits=waits,
        )

    def _group_job(self, group: Group, settled: bool) -> GroupJob:
        data, length = self.reference_data(group), self.sweep.unseen_seq
        other = at_unseen_length(group, length)
        unseen = (
            OtherShape(str(self.reference_data(other).inputs), length) if other and isinstance(length, int) else None
        )
        return GroupJob(group.cells, str(data.weights), str(data.inputs), group.controls, unseen, settled)

    def waiting(self, start: local.Launch, job: Job) -> Waiting:
        """Return a worker after its start on a job that waits. Raises WorkerFailure, and OSError as `messages` does."""
        messages, changed = self.messages(start, job), changed_since(job)
        return Waiting(start, messages, [next(messages)], changed)

    def messages(self, start: local.Launch, job: Job) -> Generator[dict[str, Any], None, None]:
        """Yield the messages of a worker as they arrive.

        Raises WorkerFailure, or OSError if the system refused it a file, or if it died while a disk takes no files.
        """
        try:
            with naming(start.folder):
                for data in self.slot.messages(start, data_of(job)):
                    if data["type"] == Refused.TYPE:
                        raise Refused.error_of(data)
                    yield data
        except local.SlotFailure:
            raise
        except local.WorkerFailure:
            durable.check_room(start.folder, start.environment)
            raise


def changed_since(job: Job) -> Callable[[], bool]:
    """Return a function that checks whether weights, inputs or models of a job have since been changed or deleted."""
    groups = (*job.groups, *job.peak_benchmarks)
    paths = [Path(path) for group in groups for path in (group.weights, group.inputs)]
    paths += [Path(group.unseen.inputs) for group in groups if group.unseen]
    paths += [Path(source) for source in job.user_models.values() if is_file(source)]
    seals = {path: durable.seal(path) for path in paths}
    return lambda: any(seal is None or seal != durable.seal(path) for path, seal in seals.items())
