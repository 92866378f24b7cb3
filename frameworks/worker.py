"""A worker: one fresh process that measures a list of groups. Run as `python -m frameworks.worker JOB RESULTS`.

JOB is a JSON file. One JSON message a line goes to RESULTS (a pipe), never to stdout: frameworks print what they like.
Threads and caches are in the environment before the process starts; see `launchers`.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

import frameworks
import workloads
from frameworks import canary
from frameworks.adapter import Adapter, Capture, Effective, Step, Unsupported
from measurement.cells import Cell
from measurement.noise import NoiseMeter
from measurement.profiles import YARDSTICK, Profile
from measurement.sampling import Clocks, Contender, delayed, first_call, independent_timer, take_rounds, warm_up
from workloads.spec import sampled

PROGRESS_SECONDS = 1.0
MARKER_BYTES = 512


class Channel:
    """Messages to the parent, and a marker file that names the cell at work even if the process dies without a word."""

    def __init__(self, results: str, marker: str):
        self._pipe = open(results, "w", buffering=1, encoding="utf-8")  # noqa: SIM115 - lives as long as the process
        self._marker = os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)

    def send(self, kind: str, **message) -> None:
        self._pipe.write(json.dumps({"type": kind, **message}) + "\n")

    def mark(self, cell_id: str) -> None:
        os.pwrite(self._marker, cell_id.encode().ljust(MARKER_BYTES), 0)

    def phase(self, cell: Cell, phase: str) -> None:
        self.mark(cell.id)
        print(f"--- {cell.id}: {phase}", file=sys.stderr, flush=True)  # whose the lines below are
        self.send("phase", cell=cell.id, phase=phase)


@dataclass
class Member:
    """A cell of the group under measurement, with its step."""

    cell: Cell
    step: Step
    contender: Contender
    prepare_s: float
    compilations: Callable[[], int | None]


class Worker:
    """Measures the groups of a job one after the other, and reports each cell as soon as its group is done."""

    def __init__(self, job: dict, channel: Channel):
        self.job, self.channel = job, channel
        self.profile = Profile(**job["profile"])
        self.clocks = Clocks()
        self.description = frameworks.describe(job["framework"])
        self.adapter: Adapter
        self.effective: Effective
        self.sound = False  # the device computed what it should when the process started

    def run(self) -> None:
        groups = [[Cell.from_json(cell) for cell in group["cells"]] for group in self.job["groups"]]
        every_cell = [cell for group in groups for cell in group]
        self.channel.send("phase", cell=None, phase="import")
        with self.reporting(every_cell) as trouble:
            self.start(every_cell[0])
        if trouble:
            return
        for position, (group, cells) in enumerate(zip(self.job["groups"], groups, strict=True), start=1):
            self.measure_group(group, cells, position)
        # Last, so that the yardstick disturbs nothing that is measured by it.
        self.profile = YARDSTICK
        for group in self.job["yardsticks"]:
            self.measure_group(group, [Cell.from_json(cell) for cell in group["cells"]], position=0)
        self.channel.send("done")

    def start(self, cell: Cell) -> None:
        """Import the framework, check the device, and configure the process, which every cell of a job shares."""
        self.adapter = frameworks.load_adapter(self.job["framework"])
        reason = self.adapter.available(cell.device)
        if reason:
            raise Unsupported(reason)
        wrong = canary.problem(self.adapter.canary(cell.device))
        if wrong and not self.job["force"]:
            why = self.adapter.available(cell.device) or f"this build does not work on {cell.device}"
            raise Unsupported(f"{wrong}: {why}. Measure all the same with --force.")
        self.effective = self.adapter.configure(cell)
        self.sound = wrong is None
        self.channel.send(
            "hello", versions=frameworks.versions(self.job["framework"]), effective=asdict(self.effective), canary=wrong
        )

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
            return canary.problem(self.adapter.canary(device)) is None
        except Exception:
            return False

    def measure_group(self, group: dict, cells: list[Cell], position: int) -> None:
        """Prepare every mode, warm each up, sample them alternately, and report."""
        workload = workloads.get(cells[0].workload)
        weights = {path.stem: np.load(path, mmap_mode="r") for path in sorted(Path(group["weights"]).glob("*.npy"))}
        inputs = load_inputs(group["inputs"])
        members = []
        for cell in cells:
            with self.reporting([cell]):
                members.append(self.prepare(workload, cell, weights, inputs))
        members += [self.control(members, **entry) for entry in group["controls"]]
        if self.job["launch"] is None:  # a priming launch only fills the compile caches
            for member in members:
                self.channel.send("cell", cell=member.cell.id, status="primed")
            members.clear()
        for member in list(members):
            self.channel.phase(member.cell, "warm-up")
            with self.reporting([member.cell]) as trouble:
                warm_up(member.contender, self.profile, self.clocks)
            if trouble:
                members.remove(member)
        noise = self.sample(members)
        self.send_reports(members, noise, position)
        members.clear()
        self.adapter.release()

    def prepare(self, workload, cell: Cell, weights, inputs) -> Member:
        """Build one mode and make its first call; a graph mode must then prove that it captured the whole model."""
        self.channel.phase(cell, "prepare")
        start = time.perf_counter()
        step = self.adapter.prepare(workload, cell, weights, inputs)

        def compilations() -> int | None:
            return step.capture().compilations

        contender = Contender(
            name=cell.id,
            step=step,
            synchronize=self.adapter.synchronize,
            compilations=compilations,
            synchronize_each_call=cell.device_kind == "cpu",
        )
        member = Member(cell, step, contender, time.perf_counter() - start, compilations)
        self.channel.phase(cell, "first call")
        first_call(contender, self.clocks)
        captured = step.capture()
        if self.description.mode(cell.mode).graph and not captured.whole:
            raise Unsupported(f"{cell.mode} did not capture the whole model: {captured.detail or captured}")
        return member

    def control(self, members: list[Member], id: str, of: str, delay: float, own_timer: bool) -> Member:
        """A second contender on the step of the cell `of`: the same, slower by a share, or under another timer."""
        origin = next(member for member in members if member.cell.id == of)
        contender = replace(origin.contender, name=id)
        if delay:
            contender.step = delayed(origin.step, contender.synchronize, delay)
        if own_timer:
            contender.timer = self.adapter.own_timer(origin.step) or independent_timer(contender)
        return replace(origin, contender=contender)

    def sample(self, members: list[Member]) -> dict:
        """Sample the modes alternately. One that fails is reported and taken out of `members`; the rest begin anew."""
        last_progress = time.perf_counter()

        def on_round(rounds: int) -> None:
            nonlocal last_progress
            if time.perf_counter() - last_progress >= PROGRESS_SECONDS:
                last_progress = time.perf_counter()
                seconds = {member.contender.name: member.contender.samples[-1] for member in members}
                self.channel.send("progress", rounds=rounds, seconds=seconds)

        while members:
            by_name = {member.contender.name: member.cell for member in members}
            at_work = [members[0].cell]

            def on_sample(contender: Contender, by_name=by_name, at_work=at_work) -> None:
                at_work[0] = by_name[contender.name]
                self.channel.mark(at_work[0].id)

            self.channel.phase(at_work[0], "sampling")
            order = random.Random(f"{self.job['seed']}/{self.job['launch']}/{at_work[0].group_id}")
            for member in members:
                member.contender = replace(member.contender, samples=[], cpu_seconds=0.0, wall_seconds=0.0)
            with self.reporting(at_work):
                meter = NoiseMeter()
                contenders = [member.contender for member in members]
                take_rounds(contenders, self.profile, self.clocks, order, on_round, on_sample)
                return meter.stop().to_json()
            members[:] = [member for member in members if member.cell is not at_work[0]]
        return {}

    def send_reports(self, members: list[Member], noise: dict, position: int) -> None:
        """Report the whole group at once: if the process dies over one mode, the others are measured together again."""
        reports = {}
        for member in members:
            with self.reporting([member.cell]):
                self.channel.mark(member.cell.id)
                reports[member.contender.name] = self.report(member, noise, position)
        for cell_id, report in reports.items():
            self.channel.send("cell", cell=cell_id, status="measured", **report)

    def report(self, member: Member, noise: dict, position: int) -> dict:
        contender, captured = member.contender, member.step.capture()
        before, after = contender.compilations_before, captured.compilations
        return {
            "prepare_s": member.prepare_s,
            "first_call_s": contender.first_call_s,
            "warmup_calls": contender.warmup_calls,
            "steady": contender.steady,
            "calls_per_sample": contender.calls_per_sample,
            "samples": contender.samples,
            "timed_s": contender.wall_seconds,
            "cpu_per_wall": contender.cpu_per_wall,
            "recompilations": None if before is None or after is None else after - before,
            "capture": asdict(captured) if isinstance(captured, Capture) else None,
            "peak_memory_bytes": self.adapter.peak_memory_bytes(),
            "noise": noise,
            "position": position,
            "outputs": self.save_outputs(member),
        }

    def save_outputs(self, member: Member) -> str:
        """Outputs for the first input sets, as the steady mode computes them; returns the file's path."""
        member.step.rewind()
        values = {}
        for index in range(self.job["parity_inputs"]):
            output = member.step()
            self.adapter.synchronize(output)
            values |= {f"{index}.{name}": sampled(v) for name, v in self.adapter.to_numpy(output).items()}
        path = Path(self.job["outputs"]) / f"{len(list(Path(self.job['outputs']).iterdir()))}.npz"
        np.savez(path, **values)
        return str(path)


def load_inputs(path: str) -> list[dict[str, np.ndarray]]:
    """The input sets of a file, in order; its keys are `<set>.<name>`."""
    sets: dict[int, dict[str, np.ndarray]] = {}
    with np.load(path) as stored:
        for key in stored.files:
            index, _, name = key.partition(".")
            sets.setdefault(int(index), {})[name] = stored[key]
    return [sets[index] for index in sorted(sets)]


def classify(error: Exception) -> tuple[str, str]:
    """The status and the one-line reason of an exception from a framework."""
    text = " ".join(str(error).split())
    reason = text if isinstance(error, Unsupported) else f"{type(error).__name__}: {text}"
    memory = ("out of memory", "resource_exhausted", "cannot allocate memory", "can't allocate memory")
    if isinstance(error, Unsupported):
        return "unsupported", reason
    if isinstance(error, MemoryError) or any(sign in text.lower() for sign in memory):
        return "oom", reason[:500]
    return "error", reason[:500]


def main() -> None:
    job_path, results = sys.argv[1:3]
    job = json.loads(Path(job_path).read_text())
    Worker(job, Channel(results, job["marker"])).run()


if __name__ == "__main__":
    main()
