"""The runner with brief profiles of COUNT processes: `python launches.py COUNT bench …`.

With one process alone no peaks are measured, which the tests of two look at: they took 2 s of a run.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import brief

import runner
from execution import peak_benchmarks
from launchers import local


def limit(count: int) -> None:
    """Let every profile be brief, with so many processes, and collections of garbage."""
    brief.shorten(count)
    local.worker_command = brief.frozen(local.worker_command)
    if count == 1:
        peak_benchmarks.groups_for = lambda cell: ()


if __name__ == "__main__":
    limit(int(sys.argv[1]))
    sys.exit(runner.main(sys.argv[2:]))
