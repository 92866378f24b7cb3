"""A worker: one fresh process that measures a list of groups. Run as `python -m frameworks.worker JOB RESULTS`.

JOB is a JSON file. One JSON message a line goes to RESULTS (a pipe), never to stdout: frameworks print what they like.
Threads and caches are in the environment before the process starts; see `launchers`.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import frameworks
from frameworks import canary
from frameworks.adapter import Adapter, Effective, Unsupported
from frameworks.channel import Channel, classify
from frameworks.contest import Contest
from frameworks.explanation import Explanation, load_profiler
from measurement.cells import YARDSTICK_PREFIX, Cell
from measurement.profiles import YARDSTICK, Profile
from measurement.sampling import Clocks


class Worker:
    """Measures the groups of a job one after the other, and reports each cell as soon as its group is done."""

    def __init__(self, job: dict, channel: Channel):
        self.job, self.channel = job, channel
        self.clocks = Clocks()
        self.description = frameworks.describe(job["framework"])
        self.adapter: Adapter
        self.effective: Effective
        self.synchronizing: set[str] = set()  # modes whose calls were seen to be done when synchronized
        self.sound = False  # the device computed what it should when the process started

    def run(self) -> None:
        every_cell = [Cell.from_json(cell) for group in self.job["groups"] for cell in group["cells"]]
        self.channel.send("phase", cell=None, phase="import")
        with self.reporting(every_cell) as trouble:
            self.start(every_cell[0])
        if trouble:
            return
        if "dumps" in self.job:
            return self.explain(every_cell)
        profile = Profile(**self.job["profile"])
        groups = self.job["groups"]
        for position, group in enumerate(groups, start=1):
            # Small yardsticks need no room on a CPU, and after them the process ends.
            releases = position < len(groups) or every_cell[0].device_kind == "gpu"
            Contest(self, group, profile, position, releases).run()
        # Last, so that the yardstick disturbs nothing that is measured by it.
        self.channel.prefix = YARDSTICK_PREFIX
        for group in self.job["yardsticks"]:
            Contest(self, group, YARDSTICK, position=0, releases=False).run()
        self.channel.send("done")

    def explain(self, every_cell: list[Cell]) -> None:
        """Profile the groups instead of timing them."""
        with self.reporting(every_cell) as trouble:
            profiler = load_profiler(self.job["framework"], self.job["dumps"])
        for group in [] if trouble else self.job["groups"]:
            Explanation(self, profiler, group).run()
        self.channel.send("done")

    def start(self, cell: Cell) -> None:
        """Import the framework, check the device, and configure the process, which every cell of a job shares."""
        self.adapter = frameworks.load_adapter(self.job["framework"])
        reason = self.adapter.obstacle(cell.device)
        if reason:
            raise Unsupported(reason)
        wrong = canary.obstacle(self.adapter, cell.device)
        if wrong and not self.job["force"]:
            raise Unsupported(f"{wrong}. Measure all the same with --force.")
        self.effective = self.adapter.configure(cell)
        if self.effective.threads not in (None, cell.threads):
            raise Unsupported(
                f"{self.description.title} was told to use {cell.threads} intra-op threads and says that it uses "
                f"{self.effective.threads}: the cell would not be what its name says."
            )
        self.sound = wrong is None
        facts = {"versions": frameworks.versions(self.job["framework"]), "installed": frameworks.installed()}
        self.channel.send("hello", **facts, effective=asdict(self.effective), canary=wrong)

    @contextlib.contextmanager
    def reporting(self, cells: list[Cell]) -> Iterator[list[str]]:
        """Turn an exception into the records of `cells`; the yielded list holds the status if that happened.

        An exception that leaves the device unusable, as an illegal access does on a GPU, ends the process: the parent
        starts a new one for the cells that are left.
        """
        trouble: list[str] = []
        try:
            yield trouble
        except Exception as error:
            if not isinstance(error, Unsupported):
                traceback.print_exc()
            status, reason = classify(error)
            trouble.append(status)
            for cell in cells:
                self.channel.send("cell", cell=cell.id, status=status, reason=reason)
            if status != "unsupported" and self.sound and not self.still_works(cells[0].device):
                sys.exit(f"{cells[0].device} now computes wrongly or not at all: the next cells need a new process.")

    def still_works(self, device: str) -> bool:
        """Whether the device, which did so at the start, still computes what it should."""
        try:
            return canary.obstacle(self.adapter, device) is None
        except Exception:
            return False


def main() -> None:
    job_path, results = sys.argv[1:3]
    job = json.loads(Path(job_path).read_text())
    Worker(job, Channel(results, job["marker"])).run()
    # All is written; taking a framework down in good order can last for seconds.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
