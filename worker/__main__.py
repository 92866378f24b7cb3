"""A worker: one fresh process that measures a list of groups. Run as `python -m worker JOB RESULTS`.

JOB is a JSON file. One JSON message a line goes to RESULTS (a pipe), never to stdout: frameworks print what they like.
Threads and caches are in the environment before the process starts; see `launchers`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from measurement.cells import YARDSTICK_PREFIX, Cell
from measurement.profiles import YARDSTICK, Profile
from worker.channel import Channel
from worker.contest import Contest
from worker.explanation import Explanation, load_profiler
from worker.station import Station


def work(station: Station) -> None:
    """Do the job's groups one after the other; each cell is reported as soon as its group is done."""
    every_cell = [Cell.from_json(cell) for group in station.job["groups"] for cell in group["cells"]]
    station.channel.send("phase", cell=None, phase="import")
    with station.reporting(every_cell) as trouble:
        station.start(every_cell[0])
    if trouble:
        return
    if "dumps" in station.job:
        explain(station, every_cell)
    else:
        measure(station, every_cell[0].device_kind)
    station.channel.send("done")


def measure(station: Station, device_kind: str) -> None:
    """Time the groups, then the yardsticks."""
    profile = Profile(**station.job["profile"])
    groups = station.job["groups"]
    for position, group in enumerate(groups, start=1):
        # Small yardsticks need no room on a CPU, and after them the process ends.
        releases = position < len(groups) or device_kind == "gpu"
        Contest(station, group, profile, position, releases).run()
    # Last, so that the yardstick disturbs nothing that is measured by it.
    station.channel.prefix = YARDSTICK_PREFIX
    for group in station.job["yardsticks"]:
        Contest(station, group, YARDSTICK, position=0, releases=False).run()


def explain(station: Station, every_cell: list[Cell]) -> None:
    """Profile the groups instead of timing them."""
    with station.reporting(every_cell) as trouble:
        profiler = load_profiler(station.job["framework"], station.job["dumps"])
    for group in [] if trouble else station.job["groups"]:
        Explanation(station, profiler, group).run()


def main() -> None:
    job_path, results = sys.argv[1:3]
    job = json.loads(Path(job_path).read_text())
    work(Station(job, Channel(results, job["marker"])))
    # All is written; taking a framework down in good order can last for seconds.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
