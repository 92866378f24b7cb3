"""Start a worker on this machine and read its messages, without using the processor while it measures."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import select
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import BinaryIO

from launchers.messages import Message, Messages, TooLong
from measurement.places import SUITE

GUARD = SUITE / "launchers" / "guard.py"
KILL_SECONDS = 5.0
DAY = 86400.0  # longer than a selector can wait at once
HELD_UP_SECONDS = 1.0  # woken later than this: the process was stopped, and perhaps its worker with it
NOTES = 20
MOST_READ = 20_000  # bytes of a worker's output
# Thread settings of the user's shell would contradict the sweep's. Other framework switches are kept and recorded.
_DROPPED = ("OMP_", "MKL_", "KMP_", "OPENBLAS_", "GOMP_")


class WorkerFailure(Exception):
    """The worker did not finish; `status` is `timeout`, `crash` or `error`, the message one sentence."""

    def __init__(self, status: str, reason: str):
        super().__init__(reason)
        self.status = status


class SlotFailure(WorkerFailure):
    """The worker's slot is gone or was taken away, through no fault of a cell; `began` if the worker had started."""

    def __init__(self, reason: str, began: bool):
        super().__init__("crash", reason)
        self.began = began


@dataclass(frozen=True)
class Launch:
    """Start of a worker: interpreter, folder for its files, environment and CPUs, and the longest silence in seconds.

    On another machine `threads` and `pinned` decide the CPUs (`machine.cpu_assignment`). `prefix` precedes the worker's
    command. `ranks` train together.
    """

    interpreter: Path
    folder: Path
    environment: dict[str, str]
    cpus: list[int]
    timeout_s: float
    threads: int = 1
    pinned: bool = False
    prefix: tuple[str, ...] = ()
    ranks: int = 1

    @property
    def log(self) -> Path:
        return self.folder / "worker.log"


def environment(additions: dict[str, str]) -> dict[str, str]:
    """Return the worker's environment: the user's without its thread settings, and with `additions`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_DROPPED)}
    path = os.pathsep.join([str(SUITE), *filter(None, [kept.get("PYTHONPATH")])])
    return {**kept, "PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1", "PYTHONPATH": path, **additions}


def run(launch: Launch, job: Mapping[str, object], stop: int | None = None) -> Generator[Message, None, None]:
    """Run a worker on `job` and yield its messages until `done`. Raises WorkerFailure.

    The worker and all that it started are stopped when the caller stops iterating. If the file descriptor `stop`
    becomes readable, KeyboardInterrupt is raised: for threads that Ctrl-C does not reach.
    """
    (launch.folder / "job.json").write_text(json.dumps(job))
    with _guarded(launch) as (results, status):
        yield from _messages(results, status, launch, stop)
        _readable(status, KILL_SECONDS)  # it is exiting, and the guard ends its remaining processes


@contextlib.contextmanager
def _guarded(launch: Launch) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Yield the pipes of a worker under its guard (`guard.py`): its results, and the guard's status."""
    with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
        results, kept = _pipe(ours, theirs)
        status, said = _pipe(ours, theirs)
        lifeline, alive = _pipe(theirs, ours)
        guard = _start(launch, [end.fileno() for end in (lifeline, said, kept)])
        theirs.close()
        try:
            yield results, status
        finally:
            _stop(guard, alive, status)


def _pipe(reader: contextlib.ExitStack, writer: contextlib.ExitStack) -> tuple[BinaryIO, BinaryIO]:
    """Return both ends of a pipe, to be closed with these stacks."""
    ends = os.pipe()
    return (
        reader.enter_context(open(ends[0], "rb", buffering=0)),
        writer.enter_context(open(ends[1], "wb", buffering=0)),
    )


def worker_command(launch: Launch, results: str) -> list[str]:
    """Return the command of a worker; `results` is the pipe's path."""
    return [*launch.prefix, str(launch.interpreter), "-m", "worker", str(launch.folder / "job.json"), results]


def _start(launch: Launch, descriptors: list[int]) -> subprocess.Popen:
    *_, kept = numbers = [str(descriptor) for descriptor in descriptors]
    worker = worker_command(launch, f"/dev/fd/{kept}")
    cpus = ",".join(map(str, launch.cpus))
    with open(launch.log, "ab") as log:
        try:
            return subprocess.Popen(
                [sys.executable, "-IS", str(GUARD), *numbers, str(launch.log), cpus, *worker],
                cwd=SUITE,
                env=launch.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=descriptors,
                start_new_session=True,  # Ctrl-C reaches the parent alone, which then stops the worker
            )
        except OSError as error:
            raise WorkerFailure("crash", f"The worker could not be started: {error.strerror}.") from None


def _stop(guard: subprocess.Popen, alive: BinaryIO, status: BinaryIO) -> None:
    """End the worker and its processes: by SIGTERM, then SIGKILL; at once after a second Ctrl-C."""
    try:
        if not _readable(status, 0):
            with contextlib.suppress(BrokenPipeError):
                alive.write(b"x")
            _readable(status, KILL_SECONDS)
    finally:
        alive.close()
        _readable(status, 2 * KILL_SECONDS)
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(guard.pid, signal.SIGKILL)  # if the guard itself was stopped or killed
        with contextlib.suppress(subprocess.TimeoutExpired):
            guard.wait(KILL_SECONDS)


def _readable(pipe: BinaryIO, seconds: float) -> bool:
    """Wait for data or the close of the other end; return whether either came in time."""
    return bool(select.select([pipe], [], [], seconds)[0])


def _messages(results: BinaryIO, status: BinaryIO, launch: Launch, stop: int | None) -> Iterator[Message]:
    """Yield messages until `done`. The parent sleeps in the kernel between them.

    The timeout restarts with each whole message, not with each byte. A wait in which this process was stopped does not
    count, since suspending a job or a container stops its worker as well.
    """
    incoming = Messages(partial(note, launch.log, itertools.count()))
    with selectors.DefaultSelector() as selector:
        sources: tuple[BinaryIO | int, ...] = (results, status) if stop is None else (results, status, stop)
        for source in sources:
            selector.register(source, selectors.EVENT_READ)
        deadline = time.monotonic() + launch.timeout_s
        while True:
            began = time.monotonic()
            patience_s = min(max(0.0, deadline - began), launch.timeout_s / 10, DAY)
            ready = [key.fileobj for key, _ in selector.select(patience_s)]
            took = time.monotonic() - began
            deadline += took if took > patience_s + HELD_UP_SECONDS else 0.0
            if stop in ready:
                raise KeyboardInterrupt
            if results in ready:
                for message in _received(results, status, incoming):
                    yield message
                    if message["type"] == "done":
                        return
                    deadline = time.monotonic() + launch.timeout_s
            elif status in ready:  # and all text was read: no holder of the pipe writes any more
                raise WorkerFailure("crash", _death(status))
            elif time.monotonic() >= deadline:
                raise WorkerFailure("timeout", silence(launch.timeout_s))


def silence(seconds: float) -> str:
    """Return the message on a worker that was silent for so long."""
    return f"The worker was silent for {seconds:g} s and was stopped; TIMEOUT=SECONDS sets a longer limit."


def _received(results: BinaryIO, status: BinaryIO, incoming: Messages) -> list[Message]:
    data = results.read(1 << 16)
    if not data:
        raise WorkerFailure("crash", _death(status))
    try:
        return incoming.feed(data)
    except TooLong as error:
        raise WorkerFailure("error", str(error)) from None


def note(log: Path, count: Iterator[int], line: bytes) -> None:
    """Write a line that is no message into the worker's log, up to a limit."""
    if next(count) < NOTES:
        with open(log, "ab") as file:
            file.write(f"--- no message on the results pipe: {line[:80]!r}\n".encode())


def _death(status: BinaryIO) -> str:
    """Return how the worker ended, as its guard reports."""
    if not _readable(status, KILL_SECONDS):
        return "The worker closed its results pipe before it was done."
    return reason_of(status.read(1 << 10).decode(errors="replace").partition("\n")[0])


def reason_of(words: str) -> str:
    """Return a sentence on a worker's end, from its guard's report."""
    word, _, rest = words.partition(" ")
    if word == "signal":
        name = signal.Signals(int(rest)).name if int(rest) in set(signal.Signals) else f"signal {rest}"
        hint = " (often the system running out of memory)" if name == "SIGKILL" else ""
        return f"The worker was killed by {name}{hint}."
    if word == "failed":
        return f"The worker could not be started: {rest}."
    if word == "exit":
        return f"The worker exited with code {rest} before it was done."
    return "The worker's guard process was killed, and with it the worker."


def log_tail(path: Path, characters: int = 3000) -> str:
    """Return the end of a worker's output, without the extension modules that Python lists at a fatal error."""
    with contextlib.suppress(OSError), open(path, "rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - MOST_READ))
        text = file.read(MOST_READ).decode(errors="replace")
        return re.sub(r"(?m)^Extension modules: .*$", "", text).strip()[-characters:].lstrip()
    return ""


def crash_place(log: Path) -> str:
    """Return a sentence on the Python line at which a worker was killed, from its output; empty if that has none."""
    _, fatal, stack = log_tail(log, MOST_READ).rpartition("Fatal Python error: ")
    frame = re.search(r'^  File "(.+)", line (\d+) in (.+)$', stack, re.MULTILINE) if fatal else None
    if frame is None:
        return ""
    path = re.sub(r".*/(site|dist)-packages/", "", frame[1].removeprefix(f"{SUITE}/"))
    return f" It ran {frame[3]} in {path}, line {frame[2]}."


def explained(error: WorkerFailure, log: Path) -> str:
    """Return the message of a worker's failure, with the line at which it was killed or else its last words."""
    last = log_tail(log).rpartition("\n")[2]
    return f"{error}{crash_place(log) or (f' Its last line: {last}' if last else '')}"
