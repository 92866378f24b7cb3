"""Start a worker on this machine and read its messages, without using the processor while it measures."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KILL_SECONDS = 5.0
# Thread settings of the user's shell would contradict the sweep's. Other framework switches are kept and recorded.
_DROPPED = ("OMP_", "MKL_", "KMP_", "OPENBLAS_", "GOMP_")


class WorkerFailure(Exception):
    """The worker did not finish; `status` is `timeout` or `crash`, the message one sentence."""

    def __init__(self, status: str, reason: str):
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class Launch:
    """What to start: interpreter, folder for its files, its environment and CPUs, and how long it may be silent."""

    interpreter: Path
    folder: Path
    environment: dict[str, str]
    cpus: list[int]
    timeout_s: float

    @property
    def log(self) -> Path:
        return self.folder / "worker.log"


def environment(additions: dict[str, str]) -> dict[str, str]:
    """The worker's environment: the user's without its thread settings, and with `additions`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_DROPPED)}
    return {**kept, "PYTHONHASHSEED": "0", "PYTHONUNBUFFERED": "1", "PYTHONPATH": _python_path(kept), **additions}


def _python_path(inherited: dict[str, str]) -> str:
    return os.pathsep.join([str(ROOT)] + [p for p in [inherited.get("PYTHONPATH")] if p])


def run(launch: Launch, job: dict, stop: int | None = None) -> Iterator[dict]:
    """Run a worker on `job` and yield its messages until it says `done`. Raises WorkerFailure.

    The worker is stopped, with whatever it started, when the caller stops iterating. `stop` is a file descriptor that
    becomes readable when the user wants everything stopped, for a thread that Ctrl-C does not reach: KeyboardInterrupt.
    """
    job_path = launch.folder / "job.json"
    job_path.write_text(json.dumps(job))
    reader, writer = os.pipe()
    with open(launch.log, "ab") as log, open(reader, "rb", buffering=0) as results:
        process = _start(launch, job_path, writer, log)
        try:
            yield from _messages(process, results, launch.timeout_s, stop)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(KILL_SECONDS)  # it is on its way out; what it left running is stopped below
        finally:
            _stop(process)


def _start(launch: Launch, job_path: Path, writer: int, log) -> subprocess.Popen:
    command = [str(launch.interpreter), "-m", "worker", str(job_path), f"/dev/fd/{writer}"]
    before = os.sched_getaffinity(0)
    try:
        # A child inherits the affinity of the thread that starts it.
        os.sched_setaffinity(0, launch.cpus)
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=launch.environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(writer,),
            start_new_session=True,  # Ctrl-C reaches the parent alone, which then stops the worker
        )
    finally:
        os.sched_setaffinity(0, before)
        os.close(writer)


def _messages(process: subprocess.Popen, results, timeout_s: float, stop: int | None) -> Iterator[dict]:
    """Messages until `done`. The parent sleeps in the kernel between them."""
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(results, selectors.EVENT_READ)
        if stop is not None:
            selector.register(stop, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in selector.select(timeout_s)]
            if stop in ready:
                raise KeyboardInterrupt
            if not ready:
                raise WorkerFailure("timeout", f"The worker gave no sign of life for {timeout_s:g} s and was stopped.")
            data = results.read(1 << 16)
            if not data:
                raise WorkerFailure("crash", _death(process))
            *lines, pending = (pending + data).split(b"\n")
            for line in lines:
                message = _parse(line)
                yield message
                if message["type"] == "done":
                    return


def _parse(line: bytes) -> dict:
    with contextlib.suppress(ValueError):
        message = json.loads(line)
        if isinstance(message, dict) and isinstance(message.get("type"), str):
            return message
    raise WorkerFailure("crash", f"The worker wrote something that is no message on its results pipe: {line[:80]!r}.")


def _death(process: subprocess.Popen) -> str:
    try:
        code = process.wait(timeout=KILL_SECONDS)
    except subprocess.TimeoutExpired:
        return "The worker closed its results pipe before it was done."
    if code < 0:
        name = signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
        hint = " (often the system running out of memory)" if name == "SIGKILL" else ""
        return f"The worker was killed by {name}{hint}."
    return f"The worker exited with code {code} before it was done."


def _stop(process: subprocess.Popen) -> None:
    """End the worker's whole process group: politely, then not; after a second Ctrl-C at once."""
    try:
        if process.poll() is None:
            _signal_group(process, signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(KILL_SECONDS)
    finally:
        _signal_group(process, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(KILL_SECONDS)


def _signal_group(process: subprocess.Popen, sign: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, sign)


def log_tail(path: Path, characters: int = 2000) -> str:
    """The end of a worker's output."""
    with contextlib.suppress(OSError):
        return path.read_bytes()[-characters:].decode(errors="replace").strip()
    return ""
