"""`selfcheck WORKLOAD=…`: whole runs of the same cells again and again, and whether their intervals agree."""

from __future__ import annotations

import itertools
import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from harness import runs
from harness.campaign import Campaign, Request
from harness.execute import Executor
from harness.progress import Bar
from harness.recorder import Recorder
from harness.sweep import UsageError
from measurement import durable, machine
from measurement.schema import MEASURED
from measurement.statistics import Interval
from reports import terminal

OVERLAP = 0.9  # of two runs' intervals are to overlap
ONLY_TOLD = ("quick",)  # too short for a promise
FIGURES = {"latency": "latency_ms_{}", "ratio": "speedup_{}"}
COLUMNS = ("profile", "figure", "cells", "pairs", "intervals overlap", "second within first", "half-width", "range")


@dataclass(frozen=True)
class Agreement:
    """What the pairs of runs of some cells say of one figure; shares are of the pairs."""

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
        shares = f"{self.overlap:.0%}", f"{self.second_in_first:.0%}"
        size = f"±{self.half_width:.1%}", f"{self.spread:.3f}"
        return self.profile, self.figure, str(self.cells), str(self.pairs), *shares, *size


def intervals_of(record: dict) -> dict[str, Interval]:
    """The record's figures that have an interval, by name; none of a cell that was not measured."""
    if record["status"] not in MEASURED:
        return {}
    values = {"latency": record.get("latency_ms_median"), "ratio": record.get("speedup_vs_eager")}
    ends = {name: [record.get(text.format(end)) for end in ("ci_low", "ci_high")] for name, text in FIGURES.items()}
    return {name: Interval(values[name], *ends[name]) for name in FIGURES if None not in (values[name], *ends[name])}


def agreement(profile: str, figure: str, cells: Iterable[Sequence[Interval]]) -> Agreement | None:
    """How the runs of each cell agree, an interval a run, in the order they were made; None without a pair."""
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


def measure_again(given: dict, repeats: int, python: str | None, console: Console) -> list[list[dict]]:
    """The records of so many whole runs of one sweep, every one in processes of its own."""
    campaign = Campaign.of(Request(given, python=python), console)
    campaign.prepare()
    by_run = []
    for number in range(repeats):
        console.print(f"{campaign.profile.name}: run {number + 1} of {repeats} …", highlight=False)
        with tempfile.TemporaryDirectory(prefix="selfcheck-") as folder:
            run = runs.Run.create(f"{folder}/run")
            context = campaign.context(f"repeat-{number}")
            with Bar(console, campaign.plan.cells, campaign.estimates, lines=False) as bar:
                recorder = Recorder(run, context, bar, campaign.store, with_peaks=False)
                executor = Executor(campaign.launcher(run), recorder, bar, lanes=campaign.lanes(run))
                executor.execute(campaign.plan, frozenset())
            by_run.append(run.records())
    return by_run


def repeat(arguments) -> int:
    """Run the check and print what it found; the exit code is 1 where runs disagree."""
    console = terminal.PlainConsole()
    if arguments.repeats < 2:
        raise UsageError("To compare whole runs takes two at least: REPEATS=20, or leave out WORKLOAD.")
    names = ("framework", "workload", "impl", "mode", "seq", "device", "threads", "budget")
    given = {name: value for name in names if (value := getattr(arguments, name)) is not None}
    agreements, kept = [], {}
    for profile in (arguments.profile or "quick").split(","):
        records = measure_again(given | {"profile": profile}, arguments.repeats, arguments.python, console)
        kept[profile] = [[{"cell": r["cell"], "status": r["status"], **_plain(r)} for r in run] for run in records]
        by_cell: dict[str, dict[str, list[Interval]]] = {figure: defaultdict(list) for figure in FIGURES}
        for record in itertools.chain(*records):
            for figure, interval in intervals_of(record).items():
                by_cell[figure][record["cell"]].append(interval)
        agreements += [made for figure in FIGURES if (made := agreement(profile, figure, by_cell[figure].values()))]
    table = Table(*COLUMNS)
    for one in agreements:
        table.add_row(*one.row)
    console.print(table)
    console.print(verdict(agreements), highlight=False)
    if arguments.out:
        told = {"machine": machine.facts(), "asked": given | {"repeats": arguments.repeats}}
        told |= {"agreement": [asdict(one) for one in agreements], "runs": kept}
        durable.replace(Path(arguments.out), (json.dumps(told, indent=1) + "\n").encode())
    return int(not agreements or any(map(_disagree, agreements)))


def _plain(record: dict) -> dict:
    return {figure: list(interval) for figure, interval in intervals_of(record).items()}


def _disagree(one: Agreement) -> bool:
    """Whether runs differ by more than their intervals allow; `quick` is told whatever it is."""
    return one.profile not in ONLY_TOLD and one.overlap < OVERLAP


def verdict(agreements: Sequence[Agreement]) -> str:
    """The answer in a sentence."""
    if not agreements:
        return "No cell was measured twice with an interval."
    failed = [f"{one.profile} ({one.figure})" for one in agreements if _disagree(one)]
    if failed:
        whose = ", ".join(failed)
        return f"Runs of the same cells differ by more than their intervals say ({whose}): quieten the machine."
    held = [one for one in agreements if one.profile not in ONLY_TOLD]
    return "Intervals agree as they promise." if held else f"Profile {agreements[0].profile} is held to no share."
