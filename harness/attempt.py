"""One worker process as the parent sees it: the messages it sent, and whom to blame if it died."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

from harness.outcomes import Failure, Outcome
from harness.plan import Bundle, Group
from launchers import local


class Display(Protocol):
    """What the executor tells whoever watches."""

    def bundle(self, bundle: Bundle, launch: int) -> None: ...
    def phase(self, cell_id: str | None, phase: str) -> None: ...
    def progress(self, rounds: int, seconds: dict[str, float]) -> None: ...
    def record(self, record: dict) -> None: ...
    def bundle_done(self, bundle: Bundle) -> None: ...


@dataclass
class Attempt:
    """What one worker process said."""

    folder: Path
    launch: int | None
    outcomes: dict[str, Outcome]
    hello: dict = field(default_factory=dict)
    at_work: str | None = None  # the cell that is at work by the messages so far; None when only the marker knows
    done: set[str] = field(default_factory=set)
    samples: list[dict] = field(default_factory=list)
    kept: list[dict] = field(default_factory=list)  # what a resumed run takes over of this launch

    def handle(self, message: dict, display: Display) -> None:
        """Take in one message of the worker. Raises WorkerFailure for one that lacks its content."""
        kind = message["type"]
        try:
            if kind == "hello":
                self.hello = {name: value for name, value in message.items() if name != "installed"}  # the run has it
            elif kind == "phase":
                self.at_work = None if message["phase"] == "sampling" else message["cell"]
                display.phase(message["cell"], message["phase"])
            elif kind == "progress":
                display.progress(message["rounds"], message["seconds"])
            elif kind == "cell":
                self.finish(message)
        except (KeyError, TypeError) as error:
            raise local.WorkerFailure("crash", f"The worker sent half a message, {kind!r}: {error!r}.") from None

    def finish(self, message: dict) -> None:
        """Keep what the worker says of a cell it is done with."""
        cell_id, status = message["cell"], message["status"]
        outcome = self.outcomes[cell_id]
        self.done.add(cell_id)
        if status == "primed":
            return
        outcome.hello = outcome.hello or self.hello
        if status != "measured":
            tail = "" if status == "unsupported" else local.log_tail(self.folder / "worker.log")
            outcome.failure = Failure(status, message["reason"], tail)
            self.kept.append({"cell": cell_id, "failure": asdict(outcome.failure)})
            return
        outcome.reports.append({"launch": self.launch, "worker": self.folder.name, **message})
        facts = {"cell": cell_id, "started_at": outcome.started_at, "hello": outcome.hello}
        self.kept.append({**facts, "report": outcome.reports[-1]})
        whose = {"cell": cell_id, "launch": self.launch, "worker": self.folder.name}
        series = {"seconds_per_call": message["samples"], "host_loop_s": message.get("host_loop_s")}
        self.samples.append({**whose, **series})

    def culprits(self, left: list[Group]) -> set[str]:
        """The cells to blame for the worker's death: the one at work, or all if it died before any.

        None if it died between two groups, or when it was done with the one at work: a new worker goes on from there.
        """
        remaining = {cell.id for group in left for cell in group.cells}
        try:
            marked = self.at_work or (self.folder / "marker").read_bytes().decode().strip()
        except OSError:
            marked = ""
        if self.hello and marked in remaining:
            return {marked}
        return set() if self.done else remaining
