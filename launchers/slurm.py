"""Start a worker as a step of a Slurm job, and describe the job to a runner inside its allocation.

srun is a prefix of the worker's command and the runner's child: its stdin is the lifeline, its stdout the worker's
messages (`step.py`), its stderr Slurm's text. A step without a report of its worker's end was lost with its node or
cancelled, whatever srun's exit code: after a node's death it may be 0.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import select
import selectors
import subprocess
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO

from launchers import local
from launchers.local import KILL_SECONDS, Launch, SlotFailure, WorkerFailure
from launchers.messages import Message, Messages, TooLong
from launchers.step import ENDED, WHERE
from measurement import programs
from measurement.places import SUITE

STEP = SUITE / "launchers" / "step.py"
IMMEDIATE = 60  # seconds that a step waits for its node's CPUs after another step ended
ASKING = 20.0  # seconds for an answer of the controller
# sinfo's states of a node that must not be used; a star marks a node that does not answer.
GONE = re.compile(r"down|fail|maint|reboot|power|unk|\*", re.IGNORECASE)
SILENT = re.compile(r"|unk.*|(?!down|fail).*\*", re.IGNORECASE)  # not down, nor heard from (since Slurm started)
DRAINED = re.compile("drain|drng", re.IGNORECASE)
GPUS = "SLURM_GPUS_ON_NODE"
OUTAGE, PAUSE = 600.0, 2.0  # seconds until a silent controller or node is given up, and between two queries
TAKEN = re.compile(r"CANCELLED|PREEMPT|DUE TO|Node failure|oom.?kill|out of memory", re.IGNORECASE)
OUT_OF_MEMORY = re.compile(r"oom.?kill|out of memory", re.IGNORECASE)


@dataclass(frozen=True)
class Allocation:
    """This process's job: its number, its nodes, and its CPUs on the node with the fewest."""

    job: str
    nodes: tuple[str, ...]
    cpus: int


@dataclass(frozen=True)
class Step:
    """Options shared by all launches of a slot.

    `share` is the slot's number on its node, and the number of slots there.
    """

    job: str
    node: str
    share: tuple[int, int] = (0, 1)
    own_gpu: bool = False
    options: tuple[str, ...] = ()  # further options of srun, such as a container's
    python: str = "python3"  # runs `step.py`
    others: tuple[str, ...] = ()  # nodes with a further rank each

    def command(self, threads: int, folder: Path) -> list[str]:
        """Return the command that starts a launch on the slot's node.

        A slot alone on its node gets as many CPUs as it has threads. Slots that share a node divide its CPUs and GPUs
        (`step.take_share`), since Slurm gives each step whichever are free.
        """
        cpus = ["--overlap"] if self.share[1] > 1 else [f"--cpus-per-task={threads}", "--exact", "--cpu-bind=cores"]
        words = [*_on(self.job, self.node), *cpus, "--kill-on-bad-exit=1", "--export=ALL", "--job-name=worker"]
        return [*words, *self.options, self.python, "-IS", str(STEP), str(folder)]


def allocation() -> Allocation | None:
    """Return this process's Slurm job; None outside a job. Raises OSError if its nodes cannot be listed."""
    job, nodes = os.environ.get("SLURM_JOB_ID"), os.environ.get("SLURM_JOB_NODELIST")
    if not job or not nodes:
        return None
    names = output_of("scontrol", "show", "hostnames", nodes)
    if not names:
        raise OSError(0, "scontrol does not name the nodes of this Slurm job", "SLURM_JOB_NODELIST")
    counts = re.findall(r"(\d+)(?:\(x\d+\))?", os.environ.get("SLURM_JOB_CPUS_PER_NODE", "")) or ["1"]
    return Allocation(job, tuple(names.split()), min(map(int, counts)))


def gpus_on_node(job: Allocation) -> int:
    """Return the number of the job's GPUs on its first node. Raises OSError if that node does not report it.

    Slurm sets it for scripts and steps, but not for salloc's shell.
    """
    if known := os.environ.get(GPUS):
        return int(known)
    question = [*asking(job.job, job.nodes[0]), "sh", "-c", f'echo "GPUs: ${{{GPUS}:-0}}"']
    answer = output_of(*question, seconds=IMMEDIATE + ASKING, environment=of_srun(dict(os.environ)))
    if not (count := re.search(r"^GPUs: (\d+)$", answer or "", re.MULTILINE)):
        raise OSError(0, "the node does not report the job's GPUs", f"Node {job.nodes[0]}")
    return int(count[1])


def asking(job: str, node: str) -> list[str]:
    """Return the srun prefix of a command on one of the job's nodes, in parallel with other steps there."""
    return [*_on(job, node), "--overlap"]


def _on(job: str, node: str) -> list[str]:
    """Return the srun prefix of a one-process step on a node, with all of the job's memory there."""
    words = [f"--jobid={job}", f"--nodelist={node}", "--nodes=1", "--ntasks=1", "--mem=0"]
    return ["srun", *words, f"--immediate={IMMEDIATE}"]


def output_of(*command: str, seconds: float = ASKING, environment: dict[str, str] | None = None) -> str | None:
    """Return the output of one of Slurm's commands; None if it fails or does not answer."""
    found = programs.answer(command, seconds, env=environment)
    return None if found is None else found.strip()


def why_gone(job: str, node: str, last: bool, stop: int | None = None) -> str | None:
    """Return why a node must not be used, by its Slurm state; None if it may.

    A drained node is used if it is the last. Waits for a controller that does not answer, as during a restart. Waits
    for a silent node until Slurm declares it dead or hears from it. The wait ends when `stop` becomes readable. Raises
    OSError if the job is over.
    """
    deadline = time.monotonic() + OUTAGE
    while SILENT.fullmatch(state := _state_of(node)) and time.monotonic() < deadline:
        if select.select([] if stop is None else [stop], [], [], PAUSE)[0]:
            return None
    if not state:
        return "since Slurm's controller does not answer"
    of_job = output_of("squeue", "--noheader", f"--jobs={job}", "--format=%T")
    if of_job != "RUNNING":  # None for a forgotten job
        raise OSError(0, f"it is over ({(of_job or 'unknown to Slurm').lower()})", f"Slurm job {job}")
    gone = GONE.search(state) or (DRAINED.search(state) and not last)
    return f"since Slurm says that it is {state}" if gone else None


def _state_of(node: str) -> str:
    """Return sinfo's state of a node; empty if the controller does not answer."""
    return (output_of("sinfo", "--noheader", f"--nodes={node}", "--format=%T") or "").partition("\n")[0]


def run(
    step: Step, launch: Launch, job: Mapping[str, object], stop: int | None = None
) -> Generator[Message, None, None]:
    """Run a worker on `job` as a step and yield its messages until `done`, like `local.run`.

    The first message is the worker's location. Raises WorkerFailure, and SlotFailure if the step was lost with its node
    or taken away.
    """
    elsewhere = []
    for rank, node in enumerate(step.others if launch.ranks > 1 else (), start=1):
        folder = launch.folder / f"rank-{rank}"
        folder.mkdir()
        other = [str(launch.interpreter), "-m", "worker.other_rank", str(folder / "job.json")]
        elsewhere.append(_written(replace(step, node=node), launch, folder, job, other))
    _written(step, launch, launch.folder, {**job, "elsewhere": elsewhere}, local.worker_command(launch, "{results}"))
    process = _Process(step, launch)
    try:
        yield from process.messages(stop)
        process.drain(KILL_SECONDS)  # it is exiting, and the guard ends its remaining processes
    finally:
        process.stop()


def _written(step: Step, launch: Launch, folder: Path, job: Mapping[str, object], command: list[str]) -> list[str]:
    """Write the input of `step.py` into a folder; return its command."""
    (folder / "job.json").write_text(json.dumps(job))
    content = {"command": command, "share": step.share, "own_gpu": step.own_gpu, "threads": launch.threads}
    content |= {"pinned": launch.pinned, "environment": _carried(launch.environment)}
    (folder / "step.json").write_text(json.dumps(content))
    return step.command(launch.threads, folder)


def _carried(environment: dict[str, str]) -> dict[str, str]:
    """Return the variables for a step, without those that its node sets: Slurm's own and the visible GPUs."""
    return {k: v for k, v in environment.items() if not k.startswith(("SLURM", "SRUN", "CUDA_VISIBLE", "HOSTNAME"))}


def of_srun(environment: dict[str, str]) -> dict[str, str]:
    """Return the variables for srun: none of the job's, which srun would take for options."""
    return _carried(environment) | {k: v for k, v in os.environ.items() if k == "SLURM_CONF"}


class _Process:
    """An srun: its messages, and its end."""

    def __init__(self, step: Step, launch: Launch):
        self._launch, self._node = launch, step.node
        self._said = launch.folder / "srun.log"
        self._began, self._ended = "", ""  # where the step runs, and the guard's report of the worker's end
        self._incoming = Messages(partial(local.note, launch.log, itertools.count()))
        with open(self._said, "ab") as said:
            try:
                self._srun = subprocess.Popen(
                    step.command(launch.threads, launch.folder),
                    cwd=SUITE,
                    env=of_srun(launch.environment),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=said,
                    bufsize=0,
                    start_new_session=True,  # Ctrl-C reaches the parent alone, which then stops the worker
                )
            except OSError as error:
                raise SlotFailure(f"srun could not be started: {error.strerror}.", began=False) from None
        assert self._srun.stdin and self._srun.stdout, "both are pipes"
        self._lifeline, self._results = self._srun.stdin, self._srun.stdout

    def messages(self, stop: int | None) -> Iterator[Message]:
        """Yield messages until `done`; the timeout restarts with each."""
        with selectors.DefaultSelector() as selector:
            sources: tuple[IO[bytes] | int, ...] = (self._results,) if stop is None else (self._results, stop)
            for source in sources:
                selector.register(source, selectors.EVENT_READ)
            deadline = time.monotonic() + self._launch.timeout_s
            while True:
                left = max(0.0, deadline - time.monotonic())
                ready = [key.fileobj for key, _ in selector.select(min(left, local.DAY))]
                if stop in ready:
                    raise KeyboardInterrupt
                if ready:
                    try:
                        messages = self._read()
                    except EOFError:
                        raise self._lost() from None
                    for message in messages:
                        yield message
                        if message["type"] == "done":
                            return
                        deadline = time.monotonic() + self._launch.timeout_s
                    if self._ended:
                        raise self._ended_early()
                elif time.monotonic() >= deadline:
                    self._silent()

    def _read(self) -> list[Message]:
        """Return the worker's messages from the available bytes. Raises EOFError at the step's end."""
        data = self._results.read(1 << 16)
        if not data:
            raise EOFError
        try:
            messages = self._incoming.feed(data)
        except TooLong as error:
            raise WorkerFailure("error", str(error)) from None
        for message in messages:
            if message["type"] == WHERE:
                self._began = f"{message.get('job')}.{message.get('step')}"
            elif message["type"] == ENDED:
                self._ended = str(message.get("words")) or "killed"
        return [message for message in messages if message["type"] != ENDED]

    def _ended_early(self) -> WorkerFailure:
        """Return the failure of a worker that ended early, by itself or because Slurm ended it."""
        self.drain(KILL_SECONDS)
        if self._ended == "signal 15" or (self._ended == "signal 9" and TAKEN.search(self._srun_said())):
            return self._lost()
        return WorkerFailure("crash", local.reason_of(self._ended))

    def _lost(self) -> WorkerFailure:
        """Return the failure of a step that Slurm ended or lost, from srun's text."""
        said = self._srun_said()
        if self._began:  # a node that restarted does not know the step, whose CPUs Slurm would keep
            output_of("scancel", self._began)
        if OUT_OF_MEMORY.search(said):
            return WorkerFailure("oom", "Slurm killed the step because it exceeded the job's memory on the node.")
        lines = [re.sub(r"^srun: (error: )?", "", line) for line in said.splitlines() if "cpu binding" not in line]
        words = " ".join(" ".join(lines).split())[-300:].rstrip(".") or "Slurm did not say why"
        return SlotFailure(f"The step on {self._node} was lost: {words}.", began=bool(self._began))

    def _srun_said(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._srun.wait(KILL_SECONDS)
        return local.log_tail(self._said)

    def _silent(self) -> None:
        """Raise WorkerFailure for a silent worker, SlotFailure for a silent node; the guard's report decides."""
        self.stop()
        if not self._ended:
            raise SlotFailure(f"{self._node} was silent for {self._launch.timeout_s:g} s.", bool(self._began))
        raise WorkerFailure("timeout", local.silence(self._launch.timeout_s))

    def stop(self) -> None:
        """End the worker and its processes: by SIGTERM, then SIGKILL, then by cancelling the step."""
        if self._srun.returncode is not None or self._lifeline.closed:
            return
        try:
            with contextlib.suppress(OSError):
                self._lifeline.write(b"x")
            self.drain(KILL_SECONDS)
        finally:
            with contextlib.suppress(OSError):
                self._lifeline.close()
            self.drain(2 * KILL_SECONDS)
            self._end_srun()

    def drain(self, seconds: float) -> None:
        """Read until the step's end, or for so long."""
        deadline = time.monotonic() + seconds
        with contextlib.suppress(EOFError, WorkerFailure), selectors.DefaultSelector() as selector:
            selector.register(self._results, selectors.EVENT_READ)
            while selector.select(max(0.0, deadline - time.monotonic())):
                self._read()

    def _end_srun(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._srun.wait(KILL_SECONDS)
        if self._srun.returncode is None:
            if self._began:
                output_of("scancel", "--signal=KILL", self._began)
            self._srun.kill()
            self._srun.wait()
        self._results.close()
