"""Programs that are asked for a fact, such as `git` and `nvidia-smi`: none can hold a run up, fill memory or stay."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

MOST = 1 << 20  # bytes of an answer
SECONDS = 30.0
_LOOK = 0.05  # seconds between two looks at whether it has ended: a child of it may keep its output open


def answer(command: Sequence[str], seconds: float = SECONDS, cwd: Path | None = None) -> str | None:
    """What a program prints; None where it is missing, fails, prints more than `MOST` bytes or takes too long.

    It is ended then, and with it what it started and left in its process group.
    """
    null = subprocess.DEVNULL
    try:
        process = subprocess.Popen(
            command, cwd=cwd, stdin=null, stdout=subprocess.PIPE, stderr=null, start_new_session=True
        )
    except OSError:
        return None
    assert process.stdout is not None
    try:
        data, deadline = b"", time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and len(data) <= MOST:
            if select.select([process.stdout], [], [], min(_LOOK, left))[0]:
                block = os.read(process.stdout.fileno(), 1 << 16)
                if not block:
                    break
                data += block
            elif process.poll() is not None:
                break
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(max(0.0, deadline - time.monotonic()) if len(data) <= MOST else 0.0)
        whole = process.returncode == 0 and len(data) <= MOST
        return data.decode(errors="replace") if whole else None
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.stdout.close()
        process.wait()
