"""The context of a worker's cells: the loaded and checked framework, the clocks, and the reporting of failures."""

from __future__ import annotations

import contextlib
import json
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import frameworks
from frameworks import ranks, smoke_test
from frameworks.adapter import Adapter, Effective, Unsupported
from frameworks.user_file import INSTALLING, disagreement
from measurement import machine
from measurement.cells import Cell
from measurement.checked import read
from measurement.cores import Cores
from measurement.host import loop_seconds
from measurement.protocol import COMPLETE, WAITS, Failed, Hello, Job
from measurement.sampling import Clocks, Control
from worker import writing
from worker.channel import Channel, classify
from worker.forks import Forks
from worker.ranked_adapter import Rank, RankedAdapter
from worker.reasons import of_user_model

LOOK_AGAIN_SECONDS = 0.1


class Context:
    """Objects shared by all groups of a job. `start` runs first, inside the caller's `reporting`."""

    def __init__(self, job: Job, channel: Channel):
        self.job, self.channel = job, channel
        self.clocks = Clocks()
        self.description = frameworks.describe(job.framework)
        self.adapter: Adapter
        self.ranked: RankedAdapter | None = None  # the same if several processes train together
        self.effective: Effective
        self.compiler_starts: dict[str, float] = {}  # seconds by compiler; modes may share one
        self.synchronizing: set[str] = set()  # modes with a checked `synchronize`
        self.full_speed_s = job.full_speed_s  # of the host's loop, from processes so far
        self.cores: Cores | None = None  # on a GPU
        self.forks = Forks()
        if job.user_models:
            self.forks.watch()
        self.sound = False  # the device passed the smoke test at the start

    def start(self, cell: Cell) -> None:
        """Import the framework, check the device, and configure the process, which every cell of a job shares."""
        self.adapter = frameworks.load_adapter(self.job.framework)
        more = 0 if self.job.elsewhere else cell.ranks - 1
        last = f"gpu:{int(cell.device.partition(':')[2]) + more}" if cell.device_kind == "gpu" else "cpu"
        reason = self.adapter.obstacle(cell.device if ranks.own() else last)
        if reason:
            raise Unsupported(reason)
        wrong = smoke_test.obstacle(self.adapter, cell.device)
        if wrong and not self.job.force:
            raise Unsupported(f"{wrong}. --force measures anyway.")
        self.effective = self.adapter.configure(cell)
        if self.effective.threads not in (None, cell.threads):
            raise Unsupported(
                f"{self.description.title} was set to {cell.threads} intra-op threads but reports "
                f"{self.effective.threads}: the cell's thread count would be wrong."
            )
        self.sound = wrong is None
        self.find_cores(cell)
        if self.adapter.processes(cell) > 1:
            if ranks.own():
                Rank(self.adapter, self.job, cell.ranks, self.cores).follow()
            self.adapter = self.ranked = RankedAdapter(self.adapter, self.job, self.channel, cell.ranks, self.cores)
        packages = frameworks.installed()
        self.channel.send(Hello(frameworks.deciding(self.job.framework, packages), self.effective, packages, wrong))

    def await_job(self) -> None:
        """Wait until the parent completes the job: another process has the device until then."""
        complete = Path(self.job.folder) / COMPLETE
        self._blame_no_cell()
        while not complete.exists():
            time.sleep(LOOK_AGAIN_SECONDS)
        self.job = read(Job, json.loads(complete.read_text()))
        self.full_speed_s = self.job.full_speed_s
        if self.cores:
            self.find_cores(self.job.cells[0])

    def _blame_no_cell(self) -> None:
        """Report that no cell is at work, for the case that the process ends."""
        self.channel.send(WAITS)
        self.channel.mark("")

    def find_cores(self, cell: Cell) -> None:
        """Know the CPUs among which `on_fast_cpus` chooses, if the cell is a GPU's."""
        if cell.device_kind == "gpu":
            self.cores = Cores(self.clocks.wall, self.own_cpus(cell))

    def own_cpus(self, cell: Cell) -> list[int]:
        """Return the CPUs that this process may move to: of processes that train together each has its own share."""
        processes = self.adapter.processes(cell)
        if processes == 1 or self.job.elsewhere:  # a Slurm step has its share
            return machine.cpu_shares(1)[0]
        try:
            return machine.cpu_shares(processes)[ranks.place()]
        except ValueError:  # fewer cores than processes
            return []

    def control(self, cell: Cell) -> Control:
        """Return a function that times the control loop, on every rank's CPU if several train the cell."""
        return self.ranked.loops if self.ranked and cell.ranks > 1 else lambda: (loop_seconds(self.clocks.wall),)

    @contextlib.contextmanager
    def on_fast_cpus(self, cell: Cell) -> Iterator[Control | None]:
        """Yield a `control` that first moves the ranks' threads to faster CPUs; None without a GPU or a choice of CPUs.

        Afterwards the threads may use all CPUs again, which compilers need.
        """
        cores, together = self.cores, self.ranked if cell.ranks > 1 else None
        if cores is None or not cores.movable:
            yield None
            return
        try:
            yield together.settle if together else lambda: (cores.settle(),)
        finally:
            if together is None:
                cores.release_cpus()
            elif not together.out_of_step:
                together.release_cpus()

    @contextlib.contextmanager
    def reporting(self, cells: list[Cell]) -> Iterator[list[str]]:
        """Report an exception as the failure of `cells`; the yielded list then holds the status.

        An exception that leaves the device unusable, such as an illegal access on a GPU, ends the process: the parent
        starts a new one for the remaining cells. So does one in a process that waits for the device: another process
        may have taken its memory. Raises Unwritten, without a report, if a disk accepts no file.
        """
        trouble: list[str] = []
        try:
            yield trouble
        except (Exception, SystemExit) as error:
            source = self.job.user_models.get(cells[0].workload)
            if isinstance(error, SystemExit) and source is None:
                raise
            writing.check_room(self.job.folder)
            if not isinstance(error, Unsupported):
                with contextlib.suppress(OSError):  # the log is no result
                    traceback.print_exc()
            status, reason = classify(error)
            if self.job.waits and status != "unsupported":
                self._blame_no_cell()
                sys.exit(f"While another process had the device: {reason}")
            if isinstance(error, SystemExit):
                reason = f"the model called exit({'' if error.code is None else error.code})"
            if source:
                reason = of_user_model(error, reason, source) + (disagreement(error) if status == "error" else "")
            if source and isinstance(error, ModuleNotFoundError):
                reason = f"{reason}: {INSTALLING}"
            if self.ranked and self.ranked.out_of_step:
                self.ranked.end([cell.id for cell in cells], status, reason)
            trouble.append(status)
            for cell in cells:
                self.channel.send(Failed(cell.id, status, reason))
            if status != "unsupported" and self.sound and not self.still_works(cells[0].device):
                sys.exit(
                    f"{cells[0].device} failed or computes wrongly after this cell: the next cells need a new process."
                )

    def still_works(self, device: str) -> bool:
        """Return whether the device, which passed the check at the start, still computes correctly."""
        try:
            return smoke_test.obstacle(self.adapter, device) is None
        except Exception:
            return False
