"""`doctor WORKLOAD=…`: whole runs of the same cells again and again, and whether their intervals agree.

Every run is kept in a folder of its own, as `bench` makes it; the same command with the same OUT goes on.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from commands import bench
from execution.campaign import Campaign, Request
from measurement import durable, flags, machine
from measurement.refusals import INTERRUPTED, UsageError, writing
from measurement.statistics import Interval
from measurement.text import make_word, percent
from plan import sweep
from records import runs
from records.record import Record
from reports import terminal
from reports.numbers import width

OVERLAP = 0.9  # of two runs' intervals are to overlap
FILE = "agreement.json"
NOT_JUDGED = ("quick",)  # too short for a promise
COLUMNS = ("profile", "figure", "cells", "pairs", "intervals overlap", "second within first", "half-width", "range")


@dataclass(frozen=True)
class Agreement:
    """Agreement of pairs of runs of some cells in one figure; shares refer to the pairs."""

    profile: str
    figure: str
    cells: int
    pairs: int
    overlap: float
    second_in_first: float
    half_width: float  # median, relative
    spread: float  # median over cells of the largest estimate over the smallest

    @property
    def row(self) -> tuple[str, ...]:
        shares = percent(self.overlap), percent(self.second_in_first)
        size = width(self.half_width), f"{self.spread:.3f}"
        return self.profile, self.figure, str(self.cells), str(self.pairs), *shares, *size


def intervals_of(record: Record) -> dict[str, Interval]:
    """Return the record's figures that have an interval, by name; none of an excluded cell."""
    figures = {} if record.excluded else {"latency": record.latency, "ratio": record.speedup}
    return {name: interval for name, interval in figures.items() if interval}


def agreement(profile: str, figure: str, cells: Iterable[Sequence[Interval]]) -> Agreement | None:
    """Return how the runs of each cell agree, an interval a run, in the order they were made; None without a pair."""
    cells = [runs_of_cell for runs_of_cell in cells if len(runs_of_cell) > 1]
    pairs = [pair for runs_of_cell in cells for pair in itertools.combinations(runs_of_cell, 2)]
    if not pairs:
        return None
    return Agreement(
        profile,
        figure,
        len(cells),
        len(pairs),
        overlap=sum(a.low <= b.high and b.low <= a.high for a, b in pairs) / len(pairs),
        second_in_first=sum(a.low <= b.value <= a.high for a, b in pairs) / len(pairs),
        half_width=median(interval.relative_half_width for runs_of_cell in cells for interval in runs_of_cell),
        spread=median(
            max(i.value for i in runs_of_cell) / min(i.value for i in runs_of_cell) for runs_of_cell in cells
        ),
    )


def measure_again(given: dict, repeats: int, python: str | None, folder: Path, console: Console) -> list[list[Record]]:
    """Return the records of so many whole runs of one sweep, each in processes and in a folder of its own.

    Runs that lie in `folder` already count, and one that was stopped is resumed. Raises UsageError where they are
    of other cells, and KeyboardInterrupt where one is stopped.
    """
    by_run = []
    for number in range(1, repeats + 1):
        out = folder / f"{given['profile']}-{number:02}"
        console.print(f"{given['profile']}: run {number} of {repeats} …")
        resumes = (out / runs.PLAN).exists()
        place: dict[str, Any] = {"python": python, "resume" if resumes else "out": str(out)}
        again = f"the same command, with {make_word('OUT', str(folder))}"
        with contextlib.ExitStack() as held:
            campaign = Campaign.start(
                Request({"workload": given["workload"]} if resumes else given, again=again, **place), console, held
            )
            if campaign.sweep != sweep.resolve(given):
                raise UsageError(f"{out} is a run of other cells than requested: choose another OUT.")
            run = bench.begin(campaign, held)
            if len(campaign.finished) < len(campaign.plan.cells) and bench.execute(campaign, *run):
                raise KeyboardInterrupt
        by_run.append(run[0].records())
    return by_run


def repeat(arguments: argparse.Namespace) -> int:
    """Run the check and print its results; the exit code is 1 where runs disagree."""
    console = terminal.PlainConsole()
    if arguments.repeats < 2:
        raise UsageError("Comparing whole runs needs at least two of them: set REPEATS=20, or omit WORKLOAD.")
    folder = begin_folder(arguments.out)
    names = ("framework", "workload", "impl", "mode", "seq", "device", "threads", "budget")
    given = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    try:
        records = {
            profile: measure_again(given | {"profile": profile}, arguments.repeats, arguments.python, folder, console)
            for profile in (arguments.profile or "quick").split(",")
        }
    except KeyboardInterrupt:
        return INTERRUPTED  # how to go on is said
    agreed = [made for profile, whole in records.items() for made in agreements(profile, whole)]
    table = Table(*COLUMNS)
    for one in agreed:
        table.add_row(*one.row)
    console.print(table)
    console.print(verdict(agreed))
    kept = {name: [[summary_of(record) for record in run] for run in whole] for name, whole in records.items()}
    content: dict[str, Any] = {"machine": machine.facts(), "asked": given | {"repeats": arguments.repeats}}
    content |= {"agreement": [asdict(one) for one in agreed], "runs": kept}
    durable.replace(folder / FILE, (json.dumps(content, indent=1) + "\n").encode())
    console.print(f"Written: {folder / FILE}; each run is in the same folder.", soft_wrap=True)
    return int(not agreed or any(map(_disagree, agreed)))


def begin_folder(out: str | None) -> Path:
    """Make the folder of the runs: OUT, or one named after the time. Raises UsageError."""
    folder = Path(out).absolute() if out else runs.RUNS
    with writing(folder):
        if not out:
            return runs.new_folder(folder)
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def agreements(profile: str, whole: Sequence[Sequence[Record]]) -> list[Agreement]:
    """Return how so many runs of the same cells agree, by figure."""
    by_cell: dict[str, dict[str, list[Interval]]] = {figure: defaultdict(list) for figure in flags.BOTH}
    for record in itertools.chain(*whole):
        for figure, interval in intervals_of(record).items():
            by_cell[figure][record.cell].append(interval)
    return [made for figure in flags.BOTH if (made := agreement(profile, figure, by_cell[figure].values()))]


def summary_of(record: Record) -> dict:
    """Return the kept part of a record: its cell, how it ended, its intervals, and how fast the host was."""
    figures = {figure: list(interval) for figure, interval in intervals_of(record).items()}
    return {
        "cell": record.cell,
        "status": record.status,
        "host_loop_ms": record.host_loop_ms_median,
        **figures,
    }


def _disagree(one: Agreement) -> bool:
    """Return whether runs differ by more than their intervals allow; `quick` is not judged."""
    return one.profile not in NOT_JUDGED and one.overlap < OVERLAP


def verdict(agreed: Sequence[Agreement]) -> str:
    """Return the answer in a sentence."""
    if not agreed:
        return "No cell was measured twice with an interval."
    failed = [f"{one.profile} ({one.figure})" for one in agreed if _disagree(one)]
    if failed:
        whose = ", ".join(failed)
        return f"Runs differ by more than their intervals allow ({whose}): stop other work on the machine."
    held = [one for one in agreed if one.profile not in NOT_JUDGED]
    if held:
        return "Intervals agree as often as they should."
    return f"PROFILE={agreed[0].profile} is not judged: no share of agreeing runs is required."
