"""The runner with as many launches as it is told, whatever the profile: `python launches.py COUNT bench …`.

One launch shows whether a framework computes what it should, a second one what it does with the first one's compile
cache. More of them tell how processes differ, which no test of a real framework asks. With one alone no peaks are
measured, which the tests of two look at: they took 2 s of a run.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import runner
from execution import peak_benchmarks
from measurement.profiles import PROFILES

WARM_UP = 0.2  # seconds


def limit(count: int) -> None:
    """Let every profile have so many launches, which begin before calls are steady: that takes 0.4 to 2 s a cell."""
    for name, profile in PROFILES.items():
        PROFILES[name] = replace(profile, minimum_processes=count, maximum_processes=count, warmup_seconds=WARM_UP)
    if count == 1:
        peak_benchmarks.groups_for = lambda cell: ()


if __name__ == "__main__":
    limit(int(sys.argv[1]))
    sys.exit(runner.main(sys.argv[2:]))
