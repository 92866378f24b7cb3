"""Fresh processes in rounds: each strategy runs once per round, in seeded random order; finished processes are kept."""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any, ClassVar, Generic, TypeVar

import frameworks
from execution import artefacts, unchanged
from execution.launcher import Launcher
from execution.progress import duration
from frameworks import policies
from launchers import local
from measurement import protocol
from measurement.flags import disturbances
from measurement.protocol import Ended, Failed, Filled, Hello, ProtocolError
from measurement.starts import Start, StartJob
from measurement.streams import Stream, StreamJob
from plan.plan import Group
from records.journal import Journal
from records.process import SCHEMA_VERSION, ProcessRecord
from records.runs import Run, git_revision, utc_now

Row = TypeVar("Row", bound=ProcessRecord)
Turn = tuple[int, int, tuple[str, ...]]  # round, place within it, arm


@dataclass
class Rounds(ABC, Generic[Row]):
    """Processes of a run. `say` prints one line per process; `machine` is the machine's id and processor.

    `task` is the kind of a worker's job, and `names` are all existing strategies. `known` has, by cell, the answer of
    the uncounted process that made the reference.
    """

    journal: ClassVar[Journal]
    task: ClassVar[str]
    names: ClassVar[Collection[str]]
    launcher: Launcher
    strategies: Sequence[str]
    processes: int
    say: Callable[[str], None]
    machine: tuple[str, str] = ("", "")
    known: dict[str, tuple[Filled, Hello]] = field(default_factory=dict)
    revision: str | None = field(default_factory=git_revision)

    @property
    def run(self) -> Run:
        return self.launcher.run

    def take(self, groups: Sequence[Group]) -> None:
        """Start every process that has no record yet; each record is on disk before the next process begins."""
        for group in groups:
            cell = group.cells[0].group_id
            records = [record for record in self.journal.read(self.run.folder) if record.cell == cell]
            if self.left(group, records):
                self.take_group(group, records)

    def take_group(self, group: Group, records: list[Row]) -> None:
        """Start the processes of one cell: the reference first."""
        cell = group.cells[0]
        title = f"{cell.framework} {cell.workload}"
        ended, hello = self.process(group, self.referring(group))
        if not isinstance(ended, Filled) or hello is None:
            self.say(f"{title} does not run: {failure(ended)['reason']}")
            return
        self.known[cell.group_id] = ended, hello
        self.say(f"{title}: reference, {ended.seconds:.1f} s, not counted")
        took: dict[tuple[str, ...], list[float]] = {}
        while left := self.left(group, records):
            unchanged.check_files(self.launcher.sweep.user_models)
            (number, place, arm), begun = left[0], time.monotonic()
            columns = self.columns(group, hello) | {"strategy": arm[0], "round": number, "place": place}
            record = self.journal.kind(**columns, **self.measured(group, number, *arm))
            self.journal.append(self.run.folder, record)
            records.append(record)
            took.setdefault(arm, []).append(time.monotonic() - begun)
            self.say(self.line(title, record) + time_left(took, [turn[2] for turn in self.left(group, records)]))

    def left(self, group: Group, records: Sequence[Row]) -> list[Turn]:
        """Return the processes that have no record yet, in their order."""
        done = {(record.round, record.arm) for record in records}
        over = {record.strategy for record in records if record.ends_strategy}
        found = []
        for number, names in enumerate(self.order(group)):
            arms = (arm for name in names for arm in self.arms(name, group))
            found += [(number, place, arm) for place, arm in enumerate(arms)]
        return [turn for turn in found if (turn[0], turn[2]) not in done and turn[2][0] not in over]

    def order(self, group: Group) -> list[list[str]]:
        """Return the ordered strategies of each round."""
        seed, cell, names = self.launcher.sweep.seed, group.cells[0].group_id, list(self.names)
        orders = [
            random.Random(f"{seed}/{cell}/{number}").sample(names, len(names)) for number in range(self.processes)
        ]
        return [[name for name in order if name in self.strategies] for order in orders]

    def arms(self, strategy: str, group: Group) -> list[tuple[str, ...]]:
        """Return the arms of a strategy for a cell, in the order in which a round takes them."""
        return [(strategy,)]

    @abstractmethod
    def referring(self, group: Group) -> StartJob | StreamJob:
        """Return the job that makes the reference."""

    @abstractmethod
    def measured(self, group: Group, number: int, *arm: str) -> dict[str, Any]:
        """Run the process of an arm in a round and return the columns of its measurement."""

    @abstractmethod
    def figures(self, record: Row) -> str:
        """Return a short text with the figures of a record; empty without any."""

    def line(self, title: str, record: Row) -> str:
        """Return one line on a process from its record."""
        head = f"{title} {record.round + 1}/{self.processes} {' '.join(record.arm)}"
        figures = self.figures(record)
        if not figures:
            return f"{head}: {record.status}: {record.reason}"
        return f"{head}: {figures}{'' if record.is_right else f', {record.status}'}"

    def columns(self, group: Group, hello: Hello) -> dict[str, Any]:
        """Return the columns on the cell, its versions, its machine, and its run."""
        cell = group.cells[0]
        distributions = frameworks.describe(cell.framework).distributions
        return {
            "schema_version": SCHEMA_VERSION,
            "run_id": self.run.id,
            "git_revision": self.revision,
            "started_at": utc_now(),
            "machine_id": self.machine[0],
            "cell": cell.group_id,
            "framework": cell.framework,
            "framework_version": frameworks.own_version(distributions, hello.versions),
            "workload": cell.workload,
            "device": cell.device,
            "device_name": hello.effective.device_name or self.machine[1],
            "dtype": cell.dtype,
            "threads": cell.threads,
            "policies": policies.differing(cell.framework, cell.device_kind, self.launcher.sweep.policies) or None,
        }

    def caches(self, cleared: bool = True) -> Path:
        """Return the folder of a process's caches and temporary files, the same for all; emptied if `cleared`."""
        live = self.run.folder / "processes" / "cache"
        if cleared:
            artefacts.remove(live)
        (live / "tmp").mkdir(parents=True, exist_ok=True)
        return live

    def process(
        self,
        group: Group,
        what: StartJob | StreamJob,
        live: Path | None = None,
        change: Callable[[dict[str, str]], dict[str, str]] = dict,
    ) -> tuple[Ended | str, Hello | None]:
        """Run one process; return its last message on the cell, or why there is none, and its `Hello`, if any.

        Its caches and temporary files are in `live`, or else in an empty folder. `change` modifies its environment.
        """
        folder, live = self.run.new_process_folder(), live or self.caches()
        start = self.launcher.start_of(group.cells[0], folder, live)
        start = replace(start, environment=change(start.environment | {"TMPDIR": str(live / "tmp")}))
        asked: Mapping[str, Any] = {self.task: what}
        job = replace(self.launcher.job(self.task, [group], folder), **asked)
        hello: Hello | None = None
        ended: Ended | str = "The worker ended without a report."
        try:
            for message in map(protocol.message, self.launcher.messages(start, job)):
                hello = message if isinstance(message, Hello) else hello
                ended = message if isinstance(message, Ended) else ended
        except local.WorkerFailure as error:
            return local.explained(error, start.log), hello
        except ProtocolError as error:
            return str(error), hello
        return ended, hello


def time_left(took: Mapping[tuple[str, ...], Sequence[float]], arms: Sequence[tuple[str, ...]]) -> str:
    """Return the end of a line with the time that the arms of processes to come will take; empty without any.

    It is empty until each of them has been timed.
    """
    if not arms or not took.keys() >= set(arms):
        return ""
    return f"; about {duration(sum(fmean(took[arm]) for arm in arms))} left for this cell"


def failure(ended: Ended | str) -> dict[str, str]:
    """Return the status and reason of a process without figures, by column."""
    status, reason = (ended.status, ended.reason) if isinstance(ended, Failed) else ("crash", str(ended))
    return {"status": status, "reason": reason}


def judged(found: Start | Stream, wrong: str, flags: Mapping[str, bool]) -> dict[str, Any]:
    """Return the columns on correct outputs, with the reason `wrong` if not, on noise, and on flags that hold."""
    noise = found.noise
    flags = {**flags, "eager_error": found.eager_error, **(disturbances(noise) if noise else {})}
    return {
        "status": "ok" if found.right else "mismatch",
        "reason": None if found.right else wrong,
        "flags": ";".join(name for name, holds in flags.items() if holds) or None,
        "parity": found.parity,
        "tolerance": found.tolerance,
        "host_loop_ms": 1000 * median(found.host_loop_s) if found.host_loop_s else None,
        "other_load_cores": noise.other_load_cores if noise else None,
        "steal_share": noise.steal_share if noise else None,
    }
