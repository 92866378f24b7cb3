"""The command `bench`: from a request to a run's folder."""

from __future__ import annotations

import argparse
import contextlib
import errno
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from analysis import ladders, modes
from analysis.answers import by_setting
from analysis.points import Points
from commands import answer, compare
from execution import campaign, cluster, neighbours, peak_benchmarks, submission
from execution.campaign import Campaign, Request
from execution.execute import Executor
from execution.progress import Bar
from execution.recorder import Recorder
from execution.reference_data import ReferenceDataError
from launchers import slurm
from measurement import machine
from measurement.cells import Cell
from measurement.refusals import DONE, INCOMPLETE, INTERRUPTED, UsageError, sentence
from measurement.text import make_command, times
from plan.options import Option
from plan.plan import expected_processes
from records import foreign, manifest, recordfile, runs
from records.cell_result import Context
from records.record import Record
from records.statuses import MEASURED
from reports import ladder, terminal

# Of the answer to scripts and continuous integration.
ANSWER = (
    Option("json", "print one JSON object to standard output, and progress to standard error", switch=True),
    Option("max-slowdown", "exit with code 1 if a graph mode is slower than eager mode by more than this", "PERCENT"),
)
UNDECIDED_PASSES = "EAGER_VS_GRAPH_UNDECIDED_PASSES"  # set by the Makefile: make calls every code but 0 an error
LOGGED = ("error", "crash", "timeout", "oom")  # statuses whose cause is in a worker's log


def options() -> list[Option]:
    """Return the options of `bench`."""
    return [*campaign.all_options(), *ANSWER]


def run(arguments: argparse.Namespace) -> int:
    """Measure models in eager mode and in graph modes, or resume a run."""
    limit = None if arguments.max_slowdown is None else compare.share(arguments.max_slowdown)
    more = submission.words_of(ANSWER, {one.flag: getattr(arguments, one.attribute) for one in ANSWER})
    finished: list[runs.Run] = []
    with answer.on_stderr() if arguments.json else contextlib.nullcontext():
        code = bench(Request.from_arguments(arguments), finished.append, more)
    if not finished:
        return code
    records = finished[0].records()
    found = answer.answered(records, finished[0].folder)
    if arguments.json:
        print(json.dumps(found, ensure_ascii=False, default=str))
    if code != DONE:
        return code
    code = answer.code(found, records, limit)
    passes = UNDECIDED_PASSES in os.environ and not arguments.json and limit is None
    return DONE if code == INCOMPLETE and passes else code


def bench(request: Request, then: Callable[[runs.Run], None] = lambda run: None, more: Sequence[str] = ()) -> int:
    """Measure a sweep, or resume one; `then` gets the run that is finished. Returns the exit code.

    A submitted job's command line ends with the words `more`. Raises UsageError before anything is measured.
    """
    console = terminal.console()
    with contextlib.ExitStack() as held:
        campaign = Campaign.start(request, console, held)
        if request.dry_run:
            return campaign.show()
        if campaign.elsewhere and slurm.allocation() is None:
            return submit(campaign, more)
        campaign.show_plan(cells=False)
        run, context = begin(campaign, held)
        console.print(f"Run {run.folder}", soft_wrap=True)
        if why := unfit_to_publish(run.folder, context.git_revision):
            console.print(why, style="yellow", soft_wrap=True)
        code = measure(campaign, run, context)
        if code != INTERRUPTED:
            then(run)
        return code


def begin(campaign: Campaign, held: contextlib.ExitStack) -> tuple[runs.Run, Context]:
    """Make the campaign's environments and reference data; return its run, `held` from now on. Raises UsageError."""
    run = campaign.resumed or held.enter_context(runs.Run.begin(campaign.request.out))
    peaks = [group for bundle in campaign.plan.bundles for group in peak_benchmarks.groups_for(bundle.first)]
    held.callback(campaign.store.close)
    campaign.prepare(peaks, later=True)
    return run, campaign.begin(run)


def submit(campaign: Campaign, more: Sequence[str] = ()) -> int:
    """Hand the run to Slurm, its environments made beforehand: many nodes have no internet. Raises UsageError.

    The job starts from the request's flags, because the campaign's have this host's number of threads.
    """
    request, console = campaign.request, campaign.console
    campaign.make_environments()
    folder = (campaign.resumed or runs.Run.create(request.out)).folder
    kept = {"python": campaign.python, "timeout": request.timeout, "scratch": request.scratch}
    kept |= {"container": request.container}
    start = request.flags | kept | {"workload": campaign.given.get("workload")}
    again = kept | {"workload": campaign.programs(folder).get("WORKLOAD")}
    words, further = ([*submission.words_of(options(), values), *more] for values in (start, again))
    text = submission.script(folder, words, further, request.nodes or 1, request.job)
    number = submission.submit(folder, text)
    console.print(f"Run {folder}: submitted as job {number}.", soft_wrap=True)
    watch = make_command("report", {"RUN": str(folder), "WATCH": "1"})
    console.print(f"Next: {watch}", soft_wrap=True)
    return DONE


def unfit_to_publish(folder: Path, revision: str | None) -> str | None:
    """Return why a run should not be committed, by the suite's revision; None if it may be, or lies elsewhere."""
    if not recordfile.is_published(folder) or (revision and not revision.endswith("+")):
        return None
    what = "tracked files are changed" if revision else "the revision is unknown"
    return (
        f"OUT={folder} is among the published results, but {what}: commit first, because records name the revision "
        f"that made them."
    )


def measure(campaign: Campaign, run: runs.Run, context: Context) -> int:
    """Run the plan and print its answers; return the exit code."""
    console = campaign.console
    if code := execute(campaign, run, context):
        return code
    records = run.records()
    terminal.closing(by_setting(Points(records), modes.labels()), records, console)
    ladder.show(ladders.of_run(run.folder, records), console)
    console.print(campaign.breakdown.sentence())
    console.print(f"CSV: {run.csv_path}", soft_wrap=True)
    if any(record.status in LOGGED for record in records):
        console.print(f"Logs: {run.folder}/processes/*/worker.log", soft_wrap=True)
    if not campaign.request.again:
        steps = next_steps(run, measured_cells(records))
        console.print(f"Next: {steps}", soft_wrap=True)
    return exit_code([record.status for record in records])


def execute(campaign: Campaign, run: runs.Run, context: Context) -> int:
    """Run the plan under a progress bar; on Ctrl-C keep results and return INTERRUPTED. Raises UsageError."""
    console, cells = campaign.console, campaign.plan.cells
    if not campaign.elsewhere:
        neighbours.await_quiet(console, campaign.on_gpu, campaign.sweep.force)
    launcher = replace(campaign.launcher(run), keeps_bytecode=not campaign.elsewhere)
    try:
        bar = Bar(console, cells, campaign.estimates, processes=expected_processes(campaign.profile))
        with resumable(lambda: f"{kept(run, cells)}; resume with: {going_on(run, campaign)}"), bar:
            recorder = Recorder(run, context, bar, campaign.store, campaign.sweep.unseen_seq)
            executor = Executor(launcher, recorder, bar, campaign.breakdown, slots=campaign.slots(run))
            executor.ready = campaign.store.complete
            executor.early = campaign.early_workers if not executor.slots and machine.gpus_are_shared() else 0
            if campaign.cluster:
                executor.control = cluster.control_of(campaign.groups)
            executor.execute(campaign.plan, campaign.finished)
    except KeyboardInterrupt:
        run.write_csv()
        console.print(f"Stopped. {kept(run, cells)}.", soft_wrap=True)
        console.print(f"Resume with: {going_on(run, campaign)}", soft_wrap=True)
        return INTERRUPTED
    finally:
        shutil.rmtree(launcher.bytecode, ignore_errors=True)
    run.compress_samples()
    return DONE


@contextlib.contextmanager
def resumable(resume: Callable[[], str]) -> Iterator[None]:
    """Add to an error that ends a run in the block the ways out, and how to resume it. Raises UsageError."""
    try:
        yield
    except BrokenPipeError:  # the reader of the output has left
        raise
    except ReferenceDataError as error:
        raise UsageError(f"{str(error).rstrip('.')}. {resume()}") from error
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        rest = " If one cell fills the disk, start a new run that selects the others (FILTER=)." if full else ""
        raise UsageError(f"{sentence(error)}{rest} {resume()}") from error


def kept(run: runs.Run, cells: Sequence[Cell]) -> str:
    """Return how many of these cells the run holds, and of how many more it holds processes."""
    finished = {record.cell for record in run.records()}
    partly = {cell.id for cell in cells} & {report["cell"] for report in run.kept_reports()} - finished
    more = f", and processes of {len(partly)} more," if partly else ""
    return f"{len(finished)} of {times(len(cells), 'cell')}{more} kept in {run.folder}"


def going_on(run: runs.Run, campaign: Campaign) -> str:
    """Return the command that resumes a run, ready to be pasted."""
    if campaign.request.again:
        return campaign.request.again
    return foreign.command("bench", run.folder, campaign.programs(run.folder))


def exit_code(statuses: list[str]) -> int:
    """Return the exit code: DONE if every possible cell was measured, without those that a framework lacks."""
    measured = [status for status in statuses if status in MEASURED]
    return DONE if measured and set(statuses) <= {*MEASURED, "unsupported"} else INCOMPLETE


def name_of(run: runs.Run) -> str:
    """Return the run's name for a command line: its name in results/runs, else its folder."""
    return run.id if run.folder.parent == runs.RUNS else str(run.folder)


def measured_cells(records: list[Record]) -> frozenset[str]:
    """Return the names of the cells that have figures."""
    return frozenset(record.cell for record in records if record.is_measured)


def next_steps(run: runs.Run, measured: frozenset[str]) -> str:
    """Return the commands to type after a run; a comparison where an earlier run measured one of the same cells."""
    report = make_command("report", {} if run.folder.parent == runs.RUNS else {"RUN": name_of(run)})
    before = earlier(run, measured)
    return f"{report} · {make_command('compare', {'A': name_of(before), 'B': name_of(run)})}" if before else report


def earlier(run: runs.Run, measured: frozenset[str]) -> runs.Run | None:
    """Return the newest run in results/runs started before this one that measured one of these cells, or None."""
    folders = manifest.in_order(path.parent for path in runs.RUNS.glob(f"*/{manifest.PLAN}"))
    before = itertools.takewhile(lambda folder: folder != run.folder, folders) if measured else ()
    for other in map(runs.Run, reversed(list(before))):
        with contextlib.suppress(UsageError):
            if not measured.isdisjoint(measured_cells(other.records())):
                return other
    return None
