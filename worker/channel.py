"""Messages from a worker to its parent, and the status of a cell after a framework's exception."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

from frameworks import obstacles
from frameworks.adapter import Unsupported
from frameworks.user_file import Fault
from measurement.cells import Cell
from measurement.protocol import REASON_CHARACTERS, Message, Phase
from worker import writing
from worker.reasons import message

MARKER_BYTES = 512
# Out-of-memory reports of frameworks, XLA, allocators and CUDA's libraries, in messages or error names.
OUT_OF_MEMORY = (
    *("out of memory", "outofmemory", "resource_exhausted", "resourceexhausted", "oom when allocating"),
    *("cannot allocate memory", "can't allocate memory", "alloc_failed", "cudaerrormemoryallocation"),
)


class Untrustworthy(Exception):
    """The figures of this cell would be wrong or misleading; the message is the reason, one sentence."""


class Channel:
    """Messages to the parent, and a marker file that names the current cell even if the process dies silently."""

    def __init__(self, results: str, marker: str):
        self._results, self._path, self._marker = results, marker, -1
        with writing.suite_file(results):
            self._pipe = open(results, "w", buffering=1, encoding="utf-8")  # noqa: SIM115 - lives as long as the process
        os.set_inheritable(int(Path(results).name), False)  # or a child that outlives this process would keep it open
        self.prefix = ""  # before every cell's name
        self.at_work = ""  # the last marked cell

    def send(self, message: Message) -> None:
        data = message.to_json()
        if data.get("cell"):
            data["cell"] = self.prefix + data["cell"]
        # The leading line end terminates any text of a framework on the pipe, which then spoils no message.
        with writing.suite_file(self._results):
            self._pipe.write("\n" + json.dumps(data) + "\n")

    def mark(self, cell_id: str) -> None:
        self.at_work = cell_id
        with writing.suite_file(self._path):
            if self._marker < 0:
                self._marker = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.pwrite(self._marker, (self.prefix + cell_id).encode().ljust(MARKER_BYTES), 0)

    def phase(self, cell: Cell, phase: str) -> None:
        self.mark(cell.id)
        while (
            descriptor := os.open(os.devnull, os.O_RDWR)
        ) <= 2:  # a framework closed it, and a file would get its number
            pass
        os.close(descriptor)
        with contextlib.suppress(OSError, ValueError):  # the log is no result, and a model may have closed it
            print(f"--- {cell.id}: {phase}", file=sys.stderr, flush=True)  # heads the lines below
        self.send(Phase(cell.id, phase))


def classify(error: BaseException) -> tuple[str, str]:
    """Return the status and the one-line reason of an exception from a framework."""
    text = message(error)
    reason = (
        text
        if isinstance(error, (Unsupported, Untrustworthy, Fault))
        else f"{type(error).__name__}: {text}".removesuffix(": ")
    )
    if isinstance(error, Unsupported):
        return "unsupported", reason[:REASON_CHARACTERS] or "The framework does not say why."
    if obstacle := obstacles.from_words(text):
        return "unsupported", f"{obstacle} ({reason[:300]})"
    if isinstance(error, MemoryError) or any(sign in reason.lower() for sign in OUT_OF_MEMORY):
        return "oom", reason[:500]
    return "error", reason[:500]
