"""The command `start`: from exec of a fresh process to the first correct answer, by strategy and phase."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

import frameworks
from analysis.starts import cells
from commands import rounds
from commands.rounds import Form
from execution.campaign import Request
from execution.starts import Starts
from measurement.cells import Cell
from measurement.starts import EAGER, WAYS
from plan.options import Option
from records import manifest, starts
from reports.sections.starts import html
from reports.starts import WORDS

PROCESSES = 10
WORKLOAD = "mlp"  # where none is named
FORM = Form("start", manifest.STARTS, starts.JOURNAL, cells, WORDS, html)


def options() -> list[Option]:
    """Return the options of `start`."""
    return [
        *rounds.options_of_bench(WORKLOAD),
        Option("strategy", f"ways to start: {', '.join(WAYS)} (default: all that a framework has)", "A,B"),
        rounds.processes_option(PROCESSES),
    ]


def run(arguments: argparse.Namespace) -> int:
    """Measure fresh processes from exec to the first correct answer; the same OUT continues."""
    chosen = rounds.named(arguments.strategy, WAYS)
    return start(rounds.request_of(arguments), chosen, arguments.processes)


def start(request: Request, chosen: list[str], processes: int) -> int:
    """Start so many processes of each strategy; the exit code. Raises UsageError before anything is started."""
    campaign = rounds.begin(request, WORKLOAD)
    return FORM.run(campaign, chosen or usual(campaign.plan.cells), processes, Starts)


def usual(measured: Iterable[Cell]) -> list[str]:
    """Return the strategies that any of the cells' frameworks has."""
    there = {EAGER, *(name for cell in measured for name in frameworks.describe(cell.framework).starts)}
    return [name for name in WAYS if name in there]
