"""The command `start`: from exec of a fresh process to the first right answer, by strategy and phase."""

from __future__ import annotations

import argparse

from analysis.starts import cells
from commands import rounds
from commands.rounds import Form
from execution.campaign import Request
from execution.starts import Starts
from measurement.starts import WAYS
from plan.options import Option
from records import manifest, starts
from reports.sections.starts import html
from reports.starts import block

PROCESSES = 10
WORKLOAD = "mlp"  # where none is named
FORM = Form("start", manifest.STARTS, starts.JOURNAL, cells, block, html)


def options() -> list[Option]:
    """Return the options of `start`."""
    return [
        *rounds.options_of_bench(WORKLOAD),
        Option("strategy", f"ways to start: {', '.join(WAYS)} (default: all)", "A,B"),
        rounds.processes_option(PROCESSES),
    ]


def run(arguments: argparse.Namespace) -> int:
    """Measure fresh processes from exec to the first right answer; the same OUT goes on with what is missing."""
    chosen = rounds.named(arguments.strategy, WAYS) or list(WAYS)
    return start(rounds.request_of(arguments), chosen, arguments.processes)


def start(request: Request, chosen: list[str], processes: int) -> int:
    """Start so many processes of each strategy; the exit code. Raises UsageError before anything is started."""
    return FORM.run(rounds.begin(request, WORKLOAD), chosen, processes, Starts)
