"""Run programs such as `git` and `uv` within limits: none can block a run, fill memory or outlive it."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MOST = 1 << 20  # bytes of an answer
SECONDS = 30.0
LONG, MUCH = 86400.0, 64 << 20  # for programs that compute or install something
_LOOK = 0.05  # seconds between checks whether it has ended: its child may keep the output open


@dataclass(frozen=True)
class Answer:
    """Output of a program, and its exit code: -N after signal N, None if it was killed for a `problem`."""

    output: str
    errors: str
    code: int | None
    problem: str = ""  # a clause without a full stop


def answer(
    command: Sequence[str], seconds: float = SECONDS, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> str | None:
    """Return a program's output; None if it is missing, fails, prints over `MOST` bytes or takes too long."""
    try:
        done = run(command, seconds, cwd=cwd, env=env)
    except OSError:
        return None
    return done.output if done.code == 0 else None


def run(
    command: Sequence[str],
    seconds: float,
    most: int = MOST,
    *,
    words: str = "",
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> Answer:
    """Run a program on the input `words`, with at most `most` bytes of output. Raises OSError if there is none.

    The remaining processes of its group are killed at its end.
    """
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=pipe if words else subprocess.DEVNULL,
        stdout=pipe,
        stderr=pipe,
        start_new_session=True,
    )
    try:
        if process.stdin:
            threading.Thread(target=_tell, args=(process.stdin, words), daemon=True).start()
        output, errors = bytearray(), bytearray()
        problem = _listen(process, {process.stdout: output, process.stderr: errors}, seconds, most)
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        for stream in filter(None, (process.stdout, process.stderr)):
            stream.close()
        process.wait()
    code = None if problem else process.returncode
    return Answer(output.decode(errors="replace"), errors.decode(errors="replace"), code, problem)


def _tell(stdin: BinaryIO, words: str) -> None:
    with contextlib.suppress(OSError), stdin:  # it need not read
        stdin.write(words.encode(errors="replace"))


def _listen(process: subprocess.Popen, streams: dict, seconds: float, most: int) -> str:
    """Read until a process and its output end; return the reason to kill it earlier, or empty."""
    deadline, late = time.monotonic() + seconds, f"it did not end within {seconds:g} s"
    with selectors.DefaultSelector() as selector:
        for stream in streams:
            selector.register(stream, selectors.EVENT_READ)
        while selector.get_map():
            ended = _has_ended(process)  # before the look: it may print and end between the two
            ready = selector.select(0 if ended else _LOOK)
            if ended and not ready:
                break
            for key, _ in ready:
                block = os.read(key.fd, 1 << 16)
                streams[key.fileobj] += block
                if not block:
                    selector.unregister(key.fileobj)
            if sum(map(len, streams.values())) > most:
                return f"it printed more than {most >> 20} MiB"
            if time.monotonic() > deadline:
                return late
    while not _has_ended(process):
        if time.monotonic() > deadline:
            return late
        time.sleep(_LOOK / 10)
    return ""


def _has_ended(process: subprocess.Popen) -> bool:
    """Return whether it has ended, without reaping: its id stays reserved until its group is killed."""
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # if the system drops children that end (SIGCHLD ignored)
        return True
