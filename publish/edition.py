"""The command `publish`: measure the missing cells of an edition of the results, and write the page of its folder.

An edition is a folder of `results/` with a folder for each place, such as `cpu` and `h100`. A place holds a run for
each sweep file of `experiments/edition/`. The records of a place are from one state of the suite and one version of
each framework.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import signal
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType

from rich.console import Console
from rich.table import Table as Grid

import frameworks
from commands import reproduce
from environments import environments
from execution.campaign import Request, local_options
from execution.progress import duration
from experiments.spec import Sweep
from measurement import durable, machine, programs
from measurement.places import INSTALLED, SUITE
from measurement.refusals import DONE, INCOMPLETE, INTERRUPTED, UsageError
from measurement.text import make_command, times
from plan import plan, sweep
from plan.aliases import choose
from plan.options import Option, chosen
from plan.sweep import split_words
from publish.place import EDITION, Table, page, read_records, read_sweeps, versions_in
from records import recordfile, runs
from reports import terminal

# A record depends on these packages: those that measure, and the one that computes its columns.
CODE = (*runs.MEASURING, "records")
# Commits, ten digits each, that change this code and no figure of a page or claim, and the reason.
SAME_FIGURES: dict[str, str] = {
    "3b8eaa570e": "the rule for slow turns leaves all figures of h100-second and h100-x2 as they are",
    "5a7ac3ccab": "so does its restriction; the rest changes texts of progress",
    "c09619fcbb": "the same rule, written shorter",
    "c7def949b3": "shortens first_call_loaded_s of training, which no page shows",
    "3172ac2a0a": "adds latency_slowed; efficiencies of slowed hosts lose their interval, as in the records",
    "ccc29178b8": "removes a path from a record's settings",
    "aee3f1016c": "adds a check of outputs on several ranks",
    "7da30168b1": "formats a line",
    "868ff5db3b": "the same check, for scalars",
    "a34e964540": "the same check, made once; caches of eager modes that compile, which no page holds",
    "a45ba75d2a": "removes an import",
    "dbfc4b333e": "moves the check of ranks",
    "3f17829ed4": "changes bounds, as in the records; no page shows them",
    "f288830cf6": "shortens the measurement of energy, which no table holds",
    "a0021f979d": "the same window, written shorter",
    "2a2434f353": "corrects peak memory, which no page of a place shows",
    "384b6012ab": "removes bounds, as in the records",
    "2cecda90e5": "the same rule for bounds, written shorter",
    "1df5380765": "compilations in streams of dynamic=True, of which no table was published",
    "c4ec4dc3f8": "changes how weights are stored, not their values",
    "610576ce95": "makes the data of peak benchmarks later",
    "a7b8501928": "what happens if they cannot be made",
    "1c1c07f698": "removes a wait that no job needs",
    "dd691cb4fc": "starts the first worker while eager mode is profiled: bounds alone could change; no page shows them",
    "017160959e": "may shorten first calls of forms where the shell forbids stored modules; no GPU has forms",
    "e72e96e87b": "restricts both",
    "b90aca558f": "rewords a message",
    "2a89dfeb3d": "blames no cell for the death of a worker that waits",
    "1af5793473": "reads the compute mode of GPUs, written shorter",
    "7ae10d259a": "compares gradients of user models where there is room; no table trains one",
    "f35b1f12b7": "the same, written shorter",
}
# The same for figures of CPUs alone.
SAME_ON_A_CPU = {
    "4ca7420481": "moves host threads of GPUs to fast CPUs",
    "6cf2ee939e": "times the control loop of ranks, of which no table was published",
    "4c146b06c7": "restricts both",
    "67d5bdeac4": "the same, written shorter",
    "87a4a2a2c2": "changes energy, which no CPU has",
    "7fb47947ff": "adds a sentence to messages of crashes",
    "1a15f126f2": "moves threads of starts on GPUs",
    "aaca9d0757": "changes JAX's ranks, of which no table was published",
    "5845d23428": "changes break-evens, which no page of a place shows",
    "33c8308018": "adds a property of records of energy",
    "8528bc0a2e": "refuses user models, and none of a table",
    "d430d3d4b4": "changes training of user models, and none is in a table",
    "c81f4b5acf": "changes reasons in messages",
}


def options() -> list[Option]:
    """Return the options of `publish`."""
    return [
        Option("edition", f"folder of results/ (default: {EDITION})", "NAME", EDITION),
        Option("place", "folder of the machine in it, such as h100 (default: cpu)", "NAME"),
        Option("device", "cpu (default), gpu, gpu:<index>", default="cpu"),
        Option("table", "only these sweep files of experiments/edition, or `headline`", "A,B"),
        Option("minutes", "stop after this time; the same command continues", "N", parse=float),
        *chosen(local_options(), "python timeout force dry-run"),
    ]


def run(arguments: argparse.Namespace) -> int:
    """Measure what a place lacks, and print and write its tables.

    Raises UsageError for a changed checkout, another state of the suite, or another version of a framework.
    """
    if INSTALLED:
        raise UsageError("`publish` adds to the results of a checkout: clone the repository.")
    console = terminal.console()
    tables = chosen_tables(arguments)
    show(tables, console)
    if tables and all(table.state() is None for table in tables):
        plan.plan(sweep.resolve(tables[0].part.flags))  # raises the reason
    missing = [table for table in tables if table.lacks]
    if not missing:
        return DONE
    place = place_of(arguments)
    check_code(place)
    check_machine(place, missing)
    if arguments.dry_run:
        return DONE
    check_versions(place, missing, arguments)
    check_libraries(missing, arguments)
    code = measure(missing, arguments, console)
    write_page(place)
    show(tables, console)
    return code


def place_of(arguments: argparse.Namespace) -> Path:
    """Return the folder of the machine in the edition. Raises UsageError."""
    kind = choose(arguments.device.partition(":")[0], environments.DEVICES, "device")
    if arguments.place is None and kind == "gpu":
        raise UsageError("Name the folder of this GPU in the edition: PLACE=h100.")
    for name, value in (("EDITION", arguments.edition), ("PLACE", arguments.place or kind)):
        if not value or Path(value).name != value or value == "runs":
            raise UsageError(f"{name} must be the name of a folder, not {value!r}.")
    return recordfile.RESULTS / arguments.edition / (arguments.place or kind)


def chosen_tables(arguments: argparse.Namespace) -> list[Table]:
    """Return the tables for the device, those that TABLE names. Raises UsageError."""
    place, kind = place_of(arguments), arguments.device.partition(":")[0]
    parts = {part.name: part for part in read_sweeps() if part.device == kind}
    names = list(parts)
    if arguments.table is not None:
        words = split_words(arguments.table)
        names = [name for word in words for name in named(word, parts)]
    flags = {"device": arguments.device} if ":" in arguments.device else {}
    flags |= {"force": True} if arguments.force else {}
    return [
        Table(replace(parts[name], flags={**parts[name].flags, **flags}), place / name) for name in dict.fromkeys(names)
    ]


def named(word: str, parts: Mapping[str, Sweep]) -> list[str]:
    """Return the sweep files that a word stands for. Raises UsageError."""
    if word == "headline":
        return [name for name, part in parts.items() if part.about.get("headline")]
    return [choose(word, parts, "table")]


def show(tables: Sequence[Table], console: Console) -> None:
    """Print the state of each table, and about how long the rest of it takes."""
    grid = Grid("table", "subject", "cells", "measured", "time left", title="Edition", title_justify="left")
    for table in tables:
        state = table.state()
        if state is None:
            grid.add_row(table.part.name, table.title, "not here", "0", "")
            continue
        cells, lacking = state
        left = duration(seconds_left(table)) if lacking else ""
        grid.add_row(table.part.name, table.title, str(cells), str(cells - lacking), left)
    console.print(grid)


def seconds_left(table: Table) -> float:
    """Return about how many seconds a table's missing cells take. Raises UsageError where it has no plan here."""
    cells, lacking = table.state() or (0, 0)
    return reproduce.size([table.part])[1] * (lacking - table.begun()) / max(cells, 1)


def check_code(place: Path) -> None:
    """Raise UsageError where the checkout is changed, or its code is not that of the records of the place."""
    revision = runs.git_revision()
    if not revision or revision.endswith("+"):
        raise UsageError("Tracked files are changed or no commit is checked out: commit first, then publish.")
    records = list(read_records(place))
    on_a_cpu = all(record.device == "cpu" for record in records)
    for other in sorted({str(record.git_revision) for record in records}):
        commits = changed_since(other, on_a_cpu)
        if commits is None:
            raise UsageError(f"{place} has records of {other}, which is not in this history: fetch it, then publish.")
        if commits:
            raise UsageError(
                f"{place} has records of {other}, and {times(len(commits), 'commit')} changed the measuring code "
                f"since, such as {commits[0]}: check out {other}, or remove the folder to measure it again. A commit "
                "that changes no figure belongs in SAME_FIGURES of publish/edition.py."
            )


def changed_since(revision: str, on_a_cpu: bool) -> list[str] | None:
    """Return commits after a revision that change `CODE`, and perhaps figures; None for an unknown revision."""
    same = {**SAME_FIGURES, **(SAME_ON_A_CPU if on_a_cpu else {})}
    if revision.endswith("+"):
        return None
    command = ["git", "log", "--format=%h %s", "--abbrev=10", f"{revision}..HEAD", "--", *CODE]
    said = programs.answer(command, cwd=SUITE)
    return None if said is None else [line for line in said.splitlines() if line.split()[0] not in same]


def check_versions(place: Path, tables: Iterable[Table], arguments: argparse.Namespace) -> None:
    """Raise UsageError where a framework has another version here than in the records of the place."""
    before = versions_in(read_records(place))
    named = {name for table in tables for name in sweep.resolve(table.part.flags).axes["framework"]}
    for name in sorted(named & before.keys()):
        interpreter = interpreter_of(name, arguments)
        versions = (version(interpreter, distribution) for distribution in frameworks.describe(name).distributions)
        now = next(filter(None, versions), None)
        if now and before[name] != {now}:
            raise UsageError(
                f"{place} has records of {name} {' and '.join(sorted(before[name]))}, and {now} is installed: install "
                "that version, or choose another PLACE."
            )


def check_libraries(tables: Iterable[Table], arguments: argparse.Namespace) -> None:
    """Raise UsageError where a table's models need a library that is not installed: it would have no figures."""
    for table in tables:
        resolved = sweep.resolve(table.part.flags)
        libraries = {source.partition(":")[0] for source in resolved.user_models.values() if ":" in source}
        for library, name in itertools.product(sorted(libraries), resolved.axes["framework"]):
            if version(interpreter_of(name, arguments), library) is None:
                raise UsageError(
                    f"{table.part.name} needs {library}, which {name}'s environment lacks: set PYTHON to an "
                    "interpreter that has it, or omit the table from TABLE."
                )


def interpreter_of(framework: str, arguments: argparse.Namespace) -> Path:
    """Return the interpreter that measures a framework, whose environment is made if need be. Raises UsageError."""
    try:
        return environments.ensure(framework, arguments.device.partition(":")[0], python=arguments.python)
    except environments.SetupError as error:
        raise UsageError(f"{framework}: {error}") from None


def check_machine(place: Path, tables: Iterable[Table]) -> None:
    """Raise UsageError where another machine began a table or measured the place: their cells are compared."""
    here = machine.facts()["machine_id"]
    for table in tables:
        if {record.machine_id for record in table.records} - {here, None}:
            raise UsageError(
                f"{table.folder} was begun on another machine: remove it to measure it here, or omit it from TABLE."
            )
    if {record.machine_id for record in read_records(place)} - {here, None}:
        raise UsageError(f"{place} has records of another machine: choose another PLACE.")


def version(interpreter: Path, distribution: str) -> str | None:
    """Return the version of a distribution that an interpreter would import; None where it has none."""
    code = "import importlib.metadata, sys; print(importlib.metadata.version(sys.argv[1]))"
    said = programs.answer([str(interpreter), "-c", code, distribution])
    return said.strip() if said else None


def measure(tables: Sequence[Table], arguments: argparse.Namespace, console: Console) -> int:
    """Measure the tables one after the other until the time ends; the exit code.

    A process that the end cuts is measured again: after the first table, only those start that have the time.
    """
    given = ("edition", "place", "device", "table", "minutes", "python")
    words = {name.upper(): getattr(arguments, name) for name in given} | {"FORCE": 1 if arguments.force else None}
    again = make_command("publish", {name: str(value) for name, value in words.items() if value is not None})
    codes: list[int] = []
    ends = math.inf if arguments.minutes is None else time.monotonic() + 60 * arguments.minutes
    with limited(arguments.minutes):
        for table in tables:
            if codes and time.monotonic() + seconds_left(table) > ends:
                console.print(f"{table.part.name} does not fit into the time left.")
                continue
            console.print(f"{table.part.name}: {table.title}", style="bold")
            table.folder.parent.mkdir(parents=True, exist_ok=True)
            request = Request(table.part.flags, timeout=arguments.timeout, python=arguments.python, again=again)
            try:
                codes.append(reproduce.run_sweep(table.part, request, table.folder))
            except KeyboardInterrupt:  # before it measures, or after
                console.print(f"Stopped. Resume with: {again}", soft_wrap=True)
                return INTERRUPTED
            if codes[-1] == INTERRUPTED:
                return INTERRUPTED
            table.clear()
    if not any(table.lacks for table in tables):
        return max(codes, default=DONE)
    console.print(f"Resume with: {again}", soft_wrap=True)
    return INCOMPLETE


@contextlib.contextmanager
def limited(minutes: float | None) -> Iterator[None]:
    """Interrupt the block after so many minutes, as Ctrl-C does."""
    if minutes is None:
        yield
        return
    if not 0 < minutes <= sweep.MOST_SECONDS:
        raise UsageError(f"MINUTES must be a number above 0, not {minutes:g}.")
    before = signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, 60 * minutes)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def write_page(place: Path) -> None:
    """Write the page of a place: a table for each run in it."""
    durable.replace(place / "README.md", page(place).encode("utf-8", "backslashreplace"))
