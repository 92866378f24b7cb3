"""The command `start`: from exec of a fresh process to the first right answer, by strategy and phase."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from analysis.starts import cells
from execution import campaign as campaigns
from execution import neighbours
from execution.campaign import Campaign, Request
from execution.starts import Starts
from measurement import durable, machine
from measurement.refusals import DONE, INCOMPLETE, INTERRUPTED, UsageError
from measurement.starts import WAYS
from measurement.text import make_command, times
from plan import user_models
from plan.aliases import choose
from plan.options import Option, without
from plan.sweep import split_words
from records import manifest, runs, starts
from reports import terminal
from reports.sections import starts as section
from reports.starts import blocks
from workloads.user_model import is_user_model

PROCESSES, PAGE = 10, "starts.html"
FRAMEWORK, WORKLOAD = "torch", "mlp"  # where none is named
_LEFT = "profile budget mode compile-cache unseen-seq isolate resume nodes scratch container"


def options() -> list[Option]:
    """Return the options of `start`."""
    return [
        *without(campaigns.local_options(), _LEFT),
        Option("strategy", f"ways to start: {', '.join(WAYS)} (default: all)", "A,B"),
        Option("processes", f"number of fresh processes per strategy (default: {PROCESSES})", "N", PROCESSES, int),
    ]


def run(arguments: argparse.Namespace) -> int:
    """Measure fresh processes from exec to the first right answer; the same OUT goes on with what is missing."""
    chosen = [choose(word, WAYS, "strategy") for word in split_words(arguments.strategy or "")] or list(WAYS)
    if arguments.processes < 1:
        raise UsageError(f"PROCESSES must be a whole number of at least 1, not {arguments.processes}.")
    arguments.mode, arguments.resume = "eager", None
    request = Request.from_arguments(arguments)
    return start(replace(request, flags=with_defaults(request.flags)), chosen, arguments.processes)


def start(request: Request, chosen: list[str], processes: int) -> int:
    """Start so many processes of each strategy; the exit code. Raises UsageError before anything is started."""
    console = terminal.console()
    campaign = Campaign.start(request, console)
    if any(cell.pass_name != "inference" for cell in campaign.plan.cells):
        raise UsageError("`start` measures inference only: omit PASS.")
    names = [cell.group_id for cell in campaign.plan.cells if cell.id not in campaign.plan.impossible]
    console.print(plan_text(names, chosen, processes), highlight=False, markup=False, soft_wrap=True)
    if request.dry_run:
        return DONE
    with contextlib.ExitStack() as held:
        campaign.prepare()
        folder = begun(request, campaign, held)
        console.print(f"Run {folder.folder}", highlight=False, soft_wrap=True)
        return measure(campaign, folder, chosen, processes, console)


def plan_text(cells: Sequence[str], strategies: Sequence[str], processes: int) -> str:
    """Return what would be started."""
    total = len(cells) * len(strategies) * processes
    head = f"{times(total, 'process', 'processes')}, {processes} of each strategy: {', '.join(strategies)}"
    return "\n  ".join((head, *cells))


def with_defaults(flags: dict[str, Any]) -> dict[str, Any]:
    """Return what is asked for, with the default model, and its framework unless a user model has its own."""
    flags = {"workload": WORKLOAD} | flags
    own = any(map(is_user_model, split_words(flags["workload"])))
    return flags if own else {"framework": FRAMEWORK} | flags


def begun(request: Request, campaign: Campaign, held: contextlib.ExitStack) -> runs.Run:
    """Return the run in OUT, `held`: a new one, or one that goes on. Raises UsageError where it asked for others."""
    path = Path(request.out) / manifest.STARTS if request.out else None
    given = json.loads(json.dumps(campaign.given, default=str))  # as it is read back
    if path is None or not path.exists():
        run = runs.Run.create(request.out)
        held.enter_context(run.held())
        cells = [cell.id for cell in campaign.plan.cells]
        content: dict[str, Any] = {"given": given, "cells": cells, "python": campaign.python, "command": sys.argv}
        content |= {"own": user_models.digests(campaign.sweep.user_models)} if campaign.sweep.user_models else {}
        content |= {"started_at": runs.utc_now(), "number": runs.next_number(run.folder)}
        manifest.write(run.folder / manifest.STARTS, content)
        run.write("machine.json", machine.facts())
        return run
    run = runs.Run(path.parent.resolve())
    held.enter_context(run.held())
    before = manifest.read(path)
    asked = {name: value for name, value in before["given"].items() if name != "strategy"}
    if (asked, before.get("python")) != (given, campaign.python):
        raise UsageError(f"{path.parent} was started with other values: repeat them, or choose another OUT.")
    user_models.check_unchanged(campaign.sweep.user_models, before.get("own", {}))
    if run.read("machine.json").get("machine_id") != machine.facts()["machine_id"]:
        raise UsageError(f"{path.parent} was started on another machine: choose another OUT.")
    return run


def measure(campaign: Campaign, run: runs.Run, strategies: list[str], processes: int, console: Console) -> int:
    """Start the processes and print what they say; the exit code."""
    facts = run.read("machine.json")
    say = lambda text: console.print(text, highlight=False, soft_wrap=True)  # noqa: E731
    one = Starts(campaign.launcher(run), strategies, processes, say, (facts["machine_id"], facts["cpu"]))
    for cell, reason in campaign.plan.impossible.items():
        say(f"{cell}: unsupported: {reason}")
    gpu = any(cell.device_kind == "gpu" for cell in campaign.plan.cells)
    neighbours.await_quiet(console, gpu, campaign.sweep.force)
    try:
        one.take(campaign.groups)
    except KeyboardInterrupt:
        starts.write_csv(run.folder, starts.read(run.folder))
        say(f"Stopped. Resume with the same command and {make_command('start', {'OUT': str(run.folder)})}")
        return INTERRUPTED
    records = starts.read(run.folder)
    starts.write_csv(run.folder, records)
    found = cells(records)
    for text in blocks(found):
        console.print(text, highlight=False, soft_wrap=True)
    command = make_command("start", {"OUT": str(run.folder)})
    page = section.html(found, f"Starts: {run.id}", command)
    durable.replace(run.folder / PAGE, page.encode("utf-8", "backslashreplace"))
    say(f"CSV: {run.folder / starts.TABLE}  Page: {run.folder / PAGE}")
    ended = {record.status for record in records}
    return DONE if "ok" in ended and ended <= {"ok", "unsupported"} else INCOMPLETE
