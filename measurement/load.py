"""Other processes that keep the machine busy while something is measured: what a neighbour would do."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def busy(processes: int, setup: str = "", work: str = "pass") -> Iterator[None]:
    """Keep so many other processes at `work`, a statement, after `setup`. They end with this process."""
    code = f"import os\n{setup}\nwhile os.getppid() == {os.getpid()}: {work}"
    neighbours = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(processes)]
    try:
        yield
    finally:
        for process in neighbours:
            process.kill()
            process.wait()
