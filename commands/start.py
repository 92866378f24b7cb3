"""The command `start`: from exec of a fresh process to the first right answer, by strategy and phase."""

from __future__ import annotations

import argparse
import contextlib
from dataclasses import replace

from analysis.starts import cells
from commands import rounds
from commands.rounds import Form
from execution.campaign import Campaign, Request
from execution.starts import Starts
from measurement.refusals import DONE
from measurement.starts import WAYS
from plan.aliases import choose
from plan.options import Option
from plan.sweep import split_words
from records import manifest, starts
from reports import terminal
from reports.sections import starts as section
from reports.starts import blocks

PROCESSES = 10
WORKLOAD = "mlp"  # where none is named
FORM = Form(
    "start",
    manifest.STARTS,
    starts.JOURNAL,
    lambda records: blocks(cells(records)),
    lambda records, title, command: section.html(cells(records), title, command),
)


def options() -> list[Option]:
    """Return the options of `start`."""
    return [
        *rounds.options_of_bench(WORKLOAD),
        Option("strategy", f"ways to start: {', '.join(WAYS)} (default: all)", "A,B"),
        rounds.processes_option(PROCESSES),
    ]


def run(arguments: argparse.Namespace) -> int:
    """Measure fresh processes from exec to the first right answer; the same OUT goes on with what is missing."""
    chosen = [choose(word, WAYS, "strategy") for word in split_words(arguments.strategy or "")] or list(WAYS)
    rounds.check_from_1("PROCESSES", arguments.processes)
    arguments.mode, arguments.resume = "eager", None
    request = Request.from_arguments(arguments)
    return start(replace(request, flags=rounds.with_defaults(request.flags, WORKLOAD)), chosen, arguments.processes)


def start(request: Request, chosen: list[str], processes: int) -> int:
    """Start so many processes of each strategy; the exit code. Raises UsageError before anything is started."""
    console = terminal.console()
    campaign = Campaign.start(request, console)
    rounds.show(campaign, "start", chosen, processes, console)
    if request.dry_run:
        return DONE
    with contextlib.ExitStack() as held:
        campaign.prepare()
        run = FORM.begun(request, campaign, {}, held)
        say, machine = rounds.voice(console), rounds.machine_of(run)
        return FORM.measure(campaign, Starts(campaign.launcher(run), chosen, processes, say, machine), console)
