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
from publish.place import EDITION, Table, page, read_records, read_sweeps
from records import recordfile, runs
from reports import terminal
from reports.run_headings import versions

# A record depends on these packages: those that measure, and the one that computes its columns.
CODE = (*runs.MEASURING, "records")
# Commits, ten digits each, that change this code and no figure of a page or claim, and the reason.
SAME_FIGURES: dict[str, str] = {}


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
    durable.replace_text(place / "README.md", page(place))
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
    for other in sorted({str(record.git_revision) for record in read_records(place)}):
        commits = changed_since(other)
        if commits is None:
            raise UsageError(f"{place} has records of {other}, which is not in this history: fetch it, then publish.")
        if commits:
            raise UsageError(
                f"{place} has records of {other}, and {times(len(commits), 'commit')} changed the measuring code "
                f"since, such as {commits[0]}: check out {other}, or remove the folder to measure it again. A commit "
                "that changes no figure belongs in SAME_FIGURES of publish/edition.py."
            )


def changed_since(revision: str) -> list[str] | None:
    """Return commits after a revision that change `CODE`, and perhaps figures; None for an unknown revision."""
    if revision.endswith("+"):
        return None
    command = ["git", "log", "--format=%h %s", "--abbrev=10", f"{revision}..HEAD", "--", *CODE]
    said = programs.answer(command, cwd=SUITE)
    return None if said is None else [line for line in said.splitlines() if line.split()[0] not in SAME_FIGURES]


def check_versions(place: Path, tables: Iterable[Table], arguments: argparse.Namespace) -> None:
    """Raise UsageError where a framework has another version here than in the records of the place."""
    before = versions(read_records(place), " and ")
    named = {name for table in tables for name in sweep.resolve(table.part.flags).axes["framework"]}
    for name in sorted(named & before.keys()):
        interpreter = interpreter_of(name, arguments)
        found = (version(interpreter, distribution) for distribution in frameworks.describe(name).distributions)
        now = next(filter(None, found), None)
        if now and before[name] != now:
            raise UsageError(
                f"{place} has records of {name} {before[name]}, and {now} is installed: install "
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
