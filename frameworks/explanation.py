"""One group under the profiler in a worker: prepare each mode, warm it up, time it, and profile a few calls."""

from __future__ import annotations

import math
import shutil
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import frameworks
from frameworks.adapter import Unsupported
from frameworks.group import GroupWork, Member, load_inputs
from frameworks.profile import Profiler
from measurement.cells import Cell
from measurement.sampling import time_calls

if TYPE_CHECKING:
    from frameworks.worker import Worker

WARM_CALLS = 5
# Enough calls for this long, within bounds: a profile of more says no more, and takes long to read.
PROFILED_SECONDS, FEWEST_CALLS, MOST_CALLS = 0.5, 3, 20


class Explanation(GroupWork):
    """The modes of one group, profiled one after the other."""

    def __init__(self, worker: Worker, profiler: Profiler | None, group: dict):
        super().__init__(worker, group)
        self.profiler = profiler

    def run(self) -> None:
        """Profile every cell; each ends in one message. Frees what the group held."""
        cells = self.startable()
        weights, inputs = self.weights(), load_inputs(self.group["inputs"])
        for cell in cells:
            with self.worker.reporting([cell]):
                self.explain(cell, weights, inputs)
        self.adapter.release()

    def explain(self, cell: Cell, weights, inputs) -> None:
        """Profile one mode and report it. Raises Unsupported where the framework has no profiler here."""
        if self.profiler is None:
            raise Unsupported(f"{self.worker.description.title} has no profiler here.")
        member = self.first_called(cell, weights, inputs)
        contender, captured = member.contender, member.captured
        self.channel.phase(cell, "warm-up")
        time_calls(contender, WARM_CALLS, self.worker.clocks)
        latency = time_calls(contender, WARM_CALLS, self.worker.clocks)
        calls = min(max(math.ceil(PROFILED_SECONDS / latency), FEWEST_CALLS), MOST_CALLS)
        self.channel.phase(cell, "profile")
        folder = Path(self.group["traces"]) / cell.mode
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        profile = self.profiler.profile(member.step, self.adapter.synchronize, calls, folder)
        attention = self.attention(member)
        self.channel.send(
            "cell", cell=cell.id, status="explained", latency_s=latency, calls=calls, profile=profile.to_json(),
            backend=captured.backend, detail=captured.detail, attention=attention,
        )  # fmt: skip

    def attention(self, member: Member) -> list[dict]:
        """How the mode calls the attention operator; what cannot be told is in the worker's log."""
        self.channel.phase(member.cell, "attention")
        try:
            calls = self.profiler.attention(member.step, eager=member.cell.mode == "eager")
            member.step.rewind()
        except Exception:  # the profile stands all the same
            traceback.print_exc()
            return []
        return calls


def load_profiler(framework: str, dumps: str) -> Profiler | None:
    """The framework's profiler, made before anything is compiled; None where it has none."""
    Path(dumps).mkdir(parents=True, exist_ok=True)
    return frameworks.load_profiler(framework, Path(dumps))
