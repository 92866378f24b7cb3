"""The command `compare`: two runs cell by cell; the history of three or more."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from analysis import changes, pairs, select
from analysis.comparison import DECIDED, FASTER, SLOWER, Comparison, Side
from commands import history, published, report
from measurement import durable
from measurement.places import shown
from measurement.refusals import FINDING, INCOMPLETE, UsageError, writing
from measurement.text import times
from plan.options import Option
from records import runs
from records.record import Record
from reports import compare as comparing
from reports import run_headings, terminal
from reports.content import grid

COLOURS = {SLOWER: "red", FASTER: "green"}
MAX_SLOWDOWN = Option("max-slowdown", "how much slower B may be (default: 5%)", "PERCENT", default="5%")
MOST_CELLS_PRINTED = 60


def options() -> list[Option]:
    """Return the options of `compare`."""
    sides = [Option(letter, f"the {which} of two runs", "RUN") for letter, which in (("a", "first"), ("b", "second"))]
    out = Option(
        "out",
        "path of the Markdown page (default: comparison.md in B's folder); with three runs or more, a folder",
        "PATH",
    )
    return [report.runs_option(), *sides, replace(MAX_SLOWDOWN, default=None), report.FILTER, out]


@report.uncollected()
def run(arguments: argparse.Namespace) -> int:
    """Compare two runs cell by cell; the exit code is 1 if B is slower than MAX_SLOWDOWN allows, or broke.

    Three or more are a history: a line for each cell, and where it stepped.
    """
    names = [*report.split(arguments.run), *filter(None, (arguments.a, arguments.b))]
    if len(names) > 2 or (len(names) == 1 and len(report.places(names[0])) > 1):
        if arguments.max_slowdown:
            raise UsageError("MAX_SLOWDOWN applies to two runs only, and a history has more: remove it.")
        arguments.run = names
        return history.run(arguments)
    if len(names) != 2:
        raise UsageError("Name the runs to compare: make compare A=<run> B=<run>; `newest` is the last run.")
    limit = share(arguments.max_slowdown or MAX_SLOWDOWN.default)
    if report.located(names[0]) == report.located(names[1]):
        raise UsageError(f"A={names[0]} and B={names[1]} are the same run; name two runs.")
    console = terminal.console()
    a, b = (report.read([name], pairs.COLUMNS_READ) for name in names)
    a.check_measured()
    b.check_measured()
    ours, theirs = (select.chosen(source.records, {}, arguments.filter) for source in (a, b))
    for remark in (*a.remarks, *b.remarks):
        console.print(remark, style="yellow", soft_wrap=True)
    comparison = changes.compare(ours, theirs, limit)
    if not comparison.in_both:
        raise UsageError(f"{a.names[0]} and {b.names[0]} have no cell in common; compare runs of the same sweep.")
    cautions = tuple(run_headings.cautions(ours, theirs))
    sides = side_of(a, ours), side_of(b, theirs)
    if sides[0].name == sides[1].name:
        sides = replace(sides[0], name=shown(a.home)), replace(sides[1], name=shown(b.home))
    return write(
        replace(comparison, sides=sides, cautions=cautions), arguments.out or b.home / "comparison.md", console
    )


def side_of(source: report.Source, records: Sequence[Record]) -> Side:
    """Return the heading of one run, by its folder's name."""
    name = source.home.name if source.folders else source.names[0]
    given = runs.Run(source.home).read(runs.PLAN).get("given")
    command = "" if given is None else published.command("bench", given)
    return Side(name, run_headings.facts(records), command)


def write(comparison: Comparison, path: str | Path, console: Console) -> int:
    """Print a comparison and write it; returns the exit code. Raises UsageError where it cannot be written."""
    show(comparison, console)
    with writing(path):
        durable.replace_text(Path(path), comparing.page(comparison))
    console.print(f"Written: {path}", soft_wrap=True)
    return code(comparison)


def code(comparison: Comparison) -> int:
    """Return the exit code: 1 where something became slower or broke, 3 where nothing could be decided, else 0."""
    if comparison.over:
        return FINDING
    return 0 if comparison.decided else INCOMPLETE


def share(text: str) -> float:
    """Return `5%` as 0.05. Raises UsageError."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if not match:
        raise UsageError(f"MAX_SLOWDOWN must be a percentage such as 5%, not {text!r}.")
    return float(match[1]) / 100


def show(comparison: Comparison, console: Console) -> None:
    """Print the answer, differences of the runs, the cells, those that changed first, and why some are open."""
    console.print(comparing.title(comparison), style="bold")
    for caution in comparison.cautions:
        console.print(caution, style="yellow")
    names = comparing.names_of(comparison)
    for letter, side in zip("AB", comparison.sides, strict=True):
        console.print(f"{letter}: {' · '.join((side.name, *side.facts))}")
    if names.shared:
        console.print(f"\nAll cells: {names.shared}")
    decided = [cell for verdict in DECIDED for cell in comparison.with_verdict(verdict)]
    content = comparing.table(decided[:MOST_CELLS_PRINTED], names, beside_eager=True)
    styles = [COLOURS.get(cell.verdict) for cell in decided]
    last = len(content.columns) - 1
    dropped = [place for place, title in enumerate(content.columns) if title == comparing.BESIDE_EAGER]
    if content.rows:
        console.print(grid(content.columns, content.texts, console.width, (*dropped, last), (0, last), styles))
    if len(decided) > MOST_CELLS_PRINTED:
        console.print(f"The first {MOST_CELLS_PRINTED} of {times(len(decided), 'cell')}.")
    for line in comparing.undecided(comparison, names):
        console.print(line)
    method = comparing.METHOD_IN_TURN if comparison.in_turn else comparing.METHOD
    console.print(method, style="dim")
    console.print(comparing.summary(comparison), style="bold")
