"""A worker: one fresh process that measures a list of groups. Run as `python -m worker JOB RESULTS`.

JOB is a JSON file. One JSON message a line goes to RESULTS (a pipe), never to stdout: frameworks print what they like.
Threads and caches are in the environment before the process starts; see `launchers`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import workloads
from measurement.cells import PEAK_PREFIX, Cell
from measurement.profiles import PEAK_BENCHMARK
from measurement.protocol import CHECK, DUMPS, EXPLAIN, MARKER, TRACES, Done, Job, Phase, Refused
from worker import writing
from worker.channel import Channel
from worker.explanation import Explanation, load_profiler
from worker.group import GroupWork
from worker.interleaved import InterleavedComparison
from worker.station import Station


def work(station: Station) -> None:
    """Do the job's groups one after the other; each cell is reported as soon as its group is done."""
    cells = station.job.cells
    station.channel.send(Phase(None, "import"))
    with station.reporting(cells) as trouble:
        station.start(cells[0])
    if trouble:
        return
    {EXPLAIN: explain, CHECK: check}.get(station.job.kind, measure)(station, cells)
    station.channel.send(Done())


def measure(station: Station, cells: list[Cell]) -> None:
    """Time the groups, then the peak benchmarks."""
    job = station.job
    for position, group in enumerate(job.groups, start=1):
        # Small peak benchmarks need no room on a CPU, and after them the process ends.
        releases = position < len(job.groups) or cells[0].device_kind == "gpu"
        InterleavedComparison(station, group, job.profile, position, releases).run()
    # Last, so that the peak benchmark disturbs nothing that is measured by it.
    station.channel.prefix = PEAK_PREFIX
    for group in job.peak_benchmarks:
        InterleavedComparison(station, group, PEAK_BENCHMARK, position=0, releases=False).run()


def explain(station: Station, cells: list[Cell]) -> None:
    """Profile the groups instead of timing them."""
    job, folder = station.job, Path(station.job.folder)
    with station.reporting(cells) as trouble:
        profiler = load_profiler(job.framework, folder / DUMPS)
    for index, group in enumerate([] if trouble else job.groups):
        Explanation(station, profiler, group, folder / TRACES / str(index)).run()


def check(station: Station, cells: list[Cell]) -> None:
    """Make a user's model and its inputs and call it in eager mode, group after group until one succeeds."""
    for group in station.job.groups:
        (cell,) = group.cells
        work, parameters = GroupWork(station, group), dict(cell.parameters)
        with station.reporting([cell]) as trouble:
            weights = work.workload.seeded_weights(parameters, station.job.seed)
            sets = work.workload.sets(parameters, station.job.seed)[: work.workload.parity_calls]
            work.first_called(cell, weights, sets)
        if not trouble:
            return


def main() -> None:
    job_path, results = sys.argv[1:3]
    job = Job.from_json(json.loads(Path(job_path).read_text()))
    workloads.add(job.user_models)
    channel = Channel(results, str(Path(job.folder) / MARKER))
    try:
        work(Station(job, channel))
    except writing.Unwritten as refused:
        channel.send(Refused(refused.path, refused.number))
    # All is written; taking a framework down in good order can last for seconds.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
