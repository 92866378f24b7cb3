"""A worker: one fresh process that measures a list of groups. Run as `python -m worker JOB RESULTS`.

JOB is a JSON file. One JSON message per line goes to RESULTS (a pipe), never to stdout: frameworks print freely there.
Threads and caches are in the environment before the process starts; see `launchers`.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib.util
import json
import os
import sys
from pathlib import Path

import frameworks
import workloads
from measurement.cells import PEAK_PREFIX, Cell
from measurement.checked import read
from measurement.profiles import PEAK_BENCHMARK
from measurement.protocol import (
    CHECK,
    DUMPS,
    EXPLAIN,
    MARKER,
    PROFILE,
    START,
    STREAM,
    TRACES,
    Done,
    Job,
    Phase,
    Refused,
)
from worker import start, stream, writing
from worker.channel import Channel
from worker.context import Context
from worker.explanation import EagerProfile, Explanation, load_profiler
from worker.group import GroupWork
from worker.interleaved import InterleavedComparison


def work(context: Context) -> None:
    """Process the job's groups in turn; report each cell as soon as its group is done."""
    cells = context.job.cells
    if context.job.kind == START:
        start.start(context)
        context.channel.send(Done())
        return
    context.channel.send(Phase(None, "import"))
    with context.reporting(cells) as trouble:
        context.start(cells[0])
    if trouble:
        return
    works = {EXPLAIN: explain, PROFILE: explain, CHECK: check, STREAM: stream.serve}
    works.get(context.job.kind, measure)(context, cells)
    context.channel.send(Done())


def measure(context: Context, cells: list[Cell]) -> None:
    """Time the groups, then the peak benchmarks; before, wait for the whole job if it is not complete.

    Only the first process starts its compilers meanwhile: another would fill the compile cache that they share.
    """
    if context.job.waits:
        if context.job.process == 0:
            GroupWork(context, context.job.groups[0]).start_early()
        context.await_job()
    job = context.job
    for position, group in enumerate(job.groups, start=1):
        # Small peak benchmarks need no room on a CPU, and after them the process ends.
        releases = position < len(job.groups) or cells[0].device_kind == "gpu"
        InterleavedComparison(context, group, job.profile, position, releases).run()
    # Last, so that peak benchmarks disturb no measurement.
    context.channel.prefix, job = PEAK_PREFIX, context.job
    if not job.peak_benchmarks or job.peaks_known_of == frameworks.versions(job.framework):
        return
    for group in job.peak_benchmarks:
        InterleavedComparison(context, group, PEAK_BENCHMARK, position=0, releases=False).run()


def explain(context: Context, cells: list[Cell]) -> None:
    """Profile the groups instead of timing them."""
    job, folder = context.job, Path(context.job.folder)
    with context.reporting(cells) as trouble:
        profiler = load_profiler(job.framework, folder / DUMPS)
    kind = EagerProfile if job.kind == PROFILE else Explanation
    for index, group in enumerate([] if trouble else job.groups):
        kind(context, profiler, group, folder / TRACES / str(index)).run()


def check(context: Context, cells: list[Cell]) -> None:
    """Build a user's model and inputs and call it in eager mode, group after group until one succeeds."""
    for group in context.job.groups:
        (cell,) = group.cells
        work, parameters = GroupWork(context, group), dict(cell.parameters)
        with context.reporting([cell]) as trouble:
            weights = work.workload.seeded_weights(parameters, context.job.seed)
            sets = work.workload.sets(parameters, context.job.seed)[: work.workload.parity_calls]
            work.first_called(cell, weights, sets)
        if not trouble:
            return


def keep_bytecode(job: Job) -> None:
    """Store compiled modules in the run if the framework has none and the shell forbids to store them elsewhere.

    So it is in many containers: each process would compile 1,700 modules of torch.
    """
    found = importlib.util.find_spec(job.framework) if job.bytecode and sys.dont_write_bytecode else None
    if found and found.cached and not Path(found.cached).exists():
        sys.pycache_prefix, sys.dont_write_bytecode = job.bytecode, False
        os.environ |= {"PYTHONPYCACHEPREFIX": job.bytecode, "PYTHONDONTWRITEBYTECODE": ""}  # of compilers' processes


def main() -> None:
    job_path, results = sys.argv[1:3]
    job = read(Job, json.loads(Path(job_path).read_text()))
    keep_bytecode(job)
    faulthandler.enable(all_threads=False)  # a crash names its line
    workloads.add(job.user_models)
    channel = Channel(results, str(Path(job.folder) / MARKER))
    try:
        work(Context(job, channel))
    except writing.Unwritten as refused:
        channel.send(Refused(refused.path, refused.number))
    # All is written; an orderly shutdown of a framework can take seconds.
    for written in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # a user's model may have closed or replaced it
            written.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
