"""Fresh processes in rounds: each strategy works once in a round, in seeded random order; finished ones are kept."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import frameworks
from execution import artefacts
from execution.launcher import Launcher
from launchers import local
from measurement import protocol
from measurement.protocol import Ended, Failed, Hello, Job, ProtocolError
from plan.plan import Group
from records.journal import Journal
from records.runs import Run, git_revision, utc_now


@dataclass
class Rounds(ABC):
    """Processes of a run. `say` takes a line for each process; `machine` is the machine's id and its processor."""

    journal: ClassVar[Journal]
    launcher: Launcher
    strategies: Sequence[str]
    processes: int
    say: Callable[[str], None]
    machine: tuple[str, str] = ("", "")
    known: dict[str, Any] = field(default_factory=dict)  # by cell, from a process that is not counted
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

    @abstractmethod
    def left(self, group: Group, records: Sequence[Any]) -> list[Any]:
        """Return the processes that have no record yet, in their order."""

    @abstractmethod
    def take_group(self, group: Group, records: list[Any]) -> None:
        """Start the processes of one cell."""

    def order(self, group: Group, names: Collection[str]) -> list[list[str]]:
        """Return the strategies of each round in their order; `names` are all that there are."""
        seed, cell = self.launcher.sweep.seed, group.cells[0].group_id
        orders = [
            random.Random(f"{seed}/{cell}/{number}").sample(list(names), len(names)) for number in range(self.processes)
        ]
        return [[name for name in order if name in self.strategies] for order in orders]

    def columns(self, group: Group, hello: Hello) -> dict[str, Any]:
        """Return the columns that say what is computed, where, in which run."""
        cell = group.cells[0]
        return {
            "run_id": self.run.id,
            "git_revision": self.revision,
            "started_at": utc_now(),
            "machine_id": self.machine[0],
            "cell": cell.group_id,
            "framework": cell.framework,
            "framework_version": hello.versions.get(frameworks.describe(cell.framework).distributions[0]),
            "workload": cell.workload,
            "device": cell.device,
            "device_name": hello.effective.device_name or self.machine[1],
            "dtype": cell.dtype,
            "threads": cell.threads,
        }

    def caches(self, cleared: bool = True) -> Path:
        """Return the folder of a process's caches and temporary files, at one path for all; empty if `cleared`."""
        live = self.run.folder / "launches" / "cache"
        if cleared:
            artefacts.remove(live)
        (live / "tmp").mkdir(parents=True, exist_ok=True)
        return live

    def ended(self, begun: local.Launch, job: Job) -> tuple[Ended | str, Hello | None]:
        """Return the last message on the cell, or why there is none, and what the worker said of its framework."""
        hello: Hello | None = None
        ended: Ended | str = "The worker ended without a word."
        try:
            for message in map(protocol.message, self.launcher.messages(begun, job)):
                hello = message if isinstance(message, Hello) else hello
                ended = message if isinstance(message, Ended) else ended
        except local.WorkerFailure as error:
            last = local.log_tail(begun.log).rpartition("\n")[2]
            return f"{error} Its last line: {last}" if last else str(error), hello
        except ProtocolError as error:
            return str(error), hello
        return ended, hello


def failure(ended: Ended | str) -> tuple[str, str]:
    """Return the status and the reason of a process that gave no figures."""
    return (ended.status, ended.reason) if isinstance(ended, Failed) else ("crash", str(ended))
