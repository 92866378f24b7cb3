"""One worker process as the parent sees it: the messages it sent, and the cells to blame if it died."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import workloads
from launchers import local
from measurement import protocol
from measurement.protocol import Ended, Failed, Hello, Message, Phase, ProtocolError, Report, Where
from plan.plan import Bundle, Group
from records.cell_result import CellResult, Failure, Kept
from records.record import Record
from reports.numbers import rounded


class Figure(NamedTuple):
    """Seconds per call of a cell so far, eager's time over it, and whether the host was slow in too many rounds."""

    seconds: float
    speedup: float | None = None
    slowed: bool = False

    def ratio(self, slowed: str) -> str:
        """Return the speedup as text, followed by `slowed` where the host was; empty without one."""
        if self.speedup is None:
            return ""
        return f"{rounded(self.speedup)}×{slowed if self.slowed else ''}"


Figures = Mapping[str, Figure]  # by cell


class Display(Protocol):
    """Shows the executor's reports."""

    def bundle(self, bundle: Bundle, process: int) -> None: ...
    def phase(self, cell_id: str | None, phase: str) -> None: ...
    def progress(self, rounds: int, seconds: dict[str, float]) -> None: ...
    def figures(self, process: int, figures: Figures) -> None: ...
    def record(self, record: Record) -> None: ...
    def bound(self, cell_id: str, sentence: str) -> None: ...
    def process_done(self, bundle: Bundle) -> None: ...
    def bundle_done(self, bundle: Bundle) -> None: ...


@dataclass
class WorkerRun:
    """The messages of one worker process, and the cells' results from them."""

    folder: Path
    process: int
    results: dict[str, CellResult]
    peak_benchmarks: tuple[Group, ...] = ()  # that it measures last
    lost_files: Callable[[], bool] = lambda: False  # whether a file of the worker's job was changed or deleted
    crowded: bool = False  # whether others waited at its start, with some of the device's memory
    hello: Hello | None = None
    where: Where | None = None  # on a cluster
    at_work: str | None = None  # the current cell by the messages so far; None if only the marker has it
    done: set[str] = field(default_factory=set)
    kept: list[Kept] = field(default_factory=list)  # results of this process that a resumed run uses

    def take(self, data: dict[str, Any]) -> Message | None:
        """Process one message of the worker, and return it; None if it is invalid and fails its cell.

        Raises WorkerFailure for an invalid message that names no cell of this worker.
        """
        try:
            message = protocol.message(data)
            if isinstance(message, Ended):
                self.finish(message)
        except ProtocolError as error:
            if error.cell not in self.results:
                raise local.WorkerFailure("error", str(error)) from None
            self.fail(error.cell, "error", str(error))
            return None
        if isinstance(message, Hello):
            self.hello = self._placed(replace(message, installed={}))  # the run stores these packages
        elif isinstance(message, Where):
            self.where = message
        elif isinstance(message, Phase):
            self.at_work = None if message.phase in ("sampling", "first figures") else message.cell
        return message

    def finish(self, message: Ended) -> None:
        """Store the worker's report of a finished cell.

        Raises ProtocolError for another worker's cell. Raises WorkerFailure if the cell failed because its files
        changed or other workers had memory, or if a user's model file may have changed.
        """
        if message.cell not in self.results or message.cell in self.done:
            raise ProtocolError(
                f"The worker reported {message.cell!r}, which was not requested or was already reported.", message.cell
            )
        if isinstance(message, Failed):
            if message.status == "error" and self.lost_files():  # tried again with new files
                raise local.WorkerFailure(message.status, message.reason)
            if message.status != "unsupported" and self.crowded:  # tried again alone
                raise local.WorkerFailure(message.status, message.reason)
            self.fail(message.cell, message.status, message.reason)
        elif isinstance(message, Report) and self.hello:
            if workloads.source_of(self.results[message.cell].cell.workload) and self.lost_files():
                raise local.WorkerFailure("error", "The model's file changed during the measurement.")
            self.keep(replace(message, process=self.process, worker=self.folder.name, node=self.node, step=self.step))
        elif isinstance(message, Report):
            raise ProtocolError("The worker reported a cell before it described its machine.", message.cell)
        self.done.add(message.cell)

    def _placed(self, hello: Hello) -> Hello:
        """Return the worker's first message, with its GPU and CPUs on a shared node."""
        if not self.where or not self.where.served_by:
            return hello
        settings = {**hello.effective.settings, "served_by": self.where.served_by}
        return replace(hello, effective=replace(hello.effective, settings=settings))

    @property
    def node(self) -> str:
        """Return the cluster's node of this process; empty without a cluster."""
        return self.where.node if self.where else ""

    @property
    def step(self) -> str:
        """Return the Slurm step of this process as `<job>.<step>`; empty without a cluster."""
        return f"{self.where.job}.{self.where.step}" if self.where else ""

    def fail(self, cell_id: str, status: str, reason: str) -> None:
        """Record the cell's failure; the first reason counts."""
        result = self.results[cell_id]
        self.done.add(cell_id)
        result.hello = result.hello or self.hello
        tail = "" if status == "unsupported" else local.log_tail(self.folder / "worker.log")
        if result.failure is None:
            result.failure, result.failed_step = Failure(status, reason, tail), self.step
            self.kept.append(Kept(cell_id, failure=result.failure, hello=result.hello, node=self.node, step=self.step))

    def keep(self, report: Report) -> None:
        """Add the report of a measured cell to its result."""
        result = self.results[report.cell]
        result.hello = result.hello or self.hello
        result.add(report)
        self.kept.append(Kept(report.cell, result.started_at, hello=result.hello, report=report))

    @property
    def marked(self) -> str:
        """Return the current cell, by the messages or the worker's marker file; empty if there is none."""
        try:
            return self.at_work or (self.folder / "marker").read_bytes().decode().strip()
        except OSError:
            return ""

    @property
    def died_at_start(self) -> bool:
        """Return whether the worker died before its first cell, such as while it imported the framework."""
        return not (self.done or (self.hello and self.marked))

    def culprits(self, left: list[Group]) -> set[str]:
        """Return the cells to blame for the worker's death: the current cell, or all if it died before any.

        Empty if it died between two groups, or after it finished the current cell: a new worker continues from there.
        """
        remaining = {cell.id for group in left for cell in group.cells}
        if self.hello and self.marked in remaining:
            return {self.marked}
        return set() if self.done else remaining
