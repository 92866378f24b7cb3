"""Common parts of commands that start fresh processes of several strategies: `start` and `stream`."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import workloads
from commands import bench
from execution import campaign, neighbours
from execution.campaign import Campaign, Request
from execution.rounds import Rounds
from measurement import durable, machine
from measurement.refusals import DONE, INCOMPLETE, INTERRUPTED, UsageError
from measurement.text import make_command, times
from plan import user_models
from plan.aliases import choose
from plan.options import Option, without
from plan.sweep import split_words
from records import manifest, runs
from records.journal import Journal
from reports import terminal
from reports.rounds import Words
from workloads.user_model import is_user_model

FRAMEWORK = "torch"  # where none is named
# Options of bench that these commands lack; a strategy of theirs is no strategy of ranks.
LEFT = (
    "profile budget mode compile-cache unseen-seq isolate resume nodes scratch container "
    "strategy checkpoint ranks energy shapes pass"
)


def options_of_bench(workload: str, left: str = "", needed: str = "") -> list[Option]:
    """Return bench's options that apply here, but those in `left`, with the defaults of these commands.

    They have the parameters that inference has in workloads with the parameter `needed`, if one is named.
    """
    defaults = {"framework": f"frameworks, or all (default: {FRAMEWORK})"}
    defaults["workload"] = f"what is computed (default: {workload})"
    options = without(campaign.local_options(), f"{LEFT} {left}")
    of_workloads = [workloads.flags_of(name, "inference") for name in workloads.names()]
    taken = set().union(*(flags for flags in of_workloads if not needed or needed in flags))
    kept = [option for option in options if option.model or not option.parameter or option.flag in taken]
    return [replace(option, help=defaults.get(option.flag, option.help)) for option in kept]


def processes_option(default: int) -> Option:
    """Return the option of how many processes each strategy has."""
    return Option("processes", f"number of fresh processes per strategy (default: {default})", "N", default, int)


def check_from_1(name: str, value: int) -> None:
    """Raise UsageError for a number below 1."""
    if value < 1:
        raise UsageError(f"{name} must be a whole number of at least 1, not {value}.")


def with_defaults(flags: dict[str, Any], workload: str) -> dict[str, Any]:
    """Return the flags with the default model, and its framework unless a user model has its own."""
    flags = {"workload": workload} | flags
    own = any(map(is_user_model, split_words(flags["workload"])))
    return flags if own else {"framework": FRAMEWORK} | flags


def named(words: str | None, known: Collection[str]) -> list[str]:
    """Return the strategies that are named; none without any. Raises UsageError for an unknown one."""
    return [choose(word, known, "strategy") for word in split_words(words or "")]


def request_of(arguments: argparse.Namespace) -> Request:
    """Return the request of a command line, in eager mode. Raises UsageError."""
    check_from_1("PROCESSES", arguments.processes)
    left = {flag.replace("-", "_") for flag in LEFT.split()}
    kept = {name: value for name, value in vars(arguments).items() if name not in left}
    request = Request.from_arguments(argparse.Namespace(**kept))
    return replace(request, flags=request.flags | {"mode": "eager"})


def begin(request: Request, workload: str) -> Campaign:
    """Return the campaign of a request, whose default is `workload`. Raises UsageError."""
    return Campaign.start(replace(request, flags=with_defaults(request.flags, workload)), terminal.console())


def show(
    campaign: Campaign, command: str, strategies: Sequence[str], processes: int, arms: Callable[[str], int]
) -> None:
    """Print the planned processes. Raises UsageError for another pass than inference.

    Each strategy has as many processes per round as `arms` returns for the framework.
    """
    if any(cell.pass_name != "inference" for cell in campaign.plan.cells):
        raise UsageError(f"`{command}` measures inference only: omit PASS.")
    cells = [cell for cell in campaign.plan.cells if cell.id not in campaign.plan.impossible]
    each = [arms(cell.framework) for cell in cells]
    total = times(sum(each) * len(strategies) * processes, "process", "processes")
    kinds = " and kind of caches" if max(each, default=1) > 1 else ""
    head = f"{total}, {processes} of each strategy{kinds}: {', '.join(strategies)}"
    lines = "\n  ".join((head, *(cell.group_id for cell in cells)))
    campaign.console.print(lines, soft_wrap=True)


@dataclass(frozen=True)
class Form:
    """The files of a command and how its records are shown.

    `cells` makes the cells of a report from records, `words` has the texts on one of them. `page` makes a page of all
    cells from title and command.
    """

    command: str
    manifest: str
    journal: Journal
    cells: Callable[[list[Any]], list[Any]]
    words: Words
    page: Callable[[list[Any], str, str], str]

    def run(
        self,
        campaign: Campaign,
        strategies: Sequence[str],
        processes: int,
        make: Callable[..., Rounds],
        more: Mapping[str, Any] = MappingProxyType({}),
        note: str = "",
        arms: Callable[[str], int] = lambda framework: 1,
    ) -> int:
        """Start so many processes of each strategy; return the exit code. Raises UsageError before anything is started.

        `make` takes a launcher, strategies, processes, a voice and a machine. `more` are settings in addition to the
        campaign's options that decide the result, and `note` is printed below the plan. `arms` is as in `show`.
        """
        console = campaign.console
        show(campaign, self.command, strategies, processes, arms)
        say = partial(console.print, soft_wrap=True)
        if note:
            say(note)
        if campaign.request.dry_run:
            return DONE
        with contextlib.ExitStack() as held:
            resumed = self.resumed(campaign, more, held)
            campaign.prepare()
            run = resumed or self.created(campaign, more, held)
            facts = run.read(runs.MACHINE)
            on = facts["machine_id"], facts["cpu"]
            return self.measure(campaign, make(campaign.launcher(run), strategies, processes, say, on))

    def resumed(self, campaign: Campaign, more: Mapping[str, Any], held: contextlib.ExitStack) -> runs.Run | None:
        """Return the run in OUT, `held`; None if OUT is free. Raises UsageError where it has other settings.

        `more` are deciding settings in addition to the campaign's options; strategies may change when a run is resumed.
        """
        out = campaign.request.out
        path = Path(out) / self.manifest if out else None
        if path is None or not path.exists():
            runs.check_free(out)
            return None
        run = runs.Run(path.parent.resolve())
        held.enter_context(run.held())
        before = manifest.read(path)
        asked = {name: value for name, value in user_models.kept(before["given"]).items() if name != "strategy"}
        if (asked, before.get("python")) != (_settings(campaign, more), campaign.python):
            raise UsageError(f"{path.parent} was started with other values: repeat them, or choose another OUT.")
        user_models.check_unchanged(campaign.sweep.user_models, before.get("own", {}))
        if run.read(runs.MACHINE).get("machine_id") != machine.facts()["machine_id"]:
            raise UsageError(f"{path.parent} was started on another machine: choose another OUT.")
        return run

    def created(self, campaign: Campaign, more: Mapping[str, Any], held: contextlib.ExitStack) -> runs.Run:
        """Return a new run, `held`, in OUT or under `results/runs`, with its manifest."""
        run = runs.Run.create(campaign.request.out)
        held.enter_context(run.held())
        cells = [cell.id for cell in campaign.plan.cells]
        content: dict[str, Any] = {"given": _settings(campaign, more), "cells": cells}
        content |= {"python": campaign.python, "command": sys.argv}
        content |= {"own": user_models.digests(campaign.sweep.user_models)} if campaign.sweep.user_models else {}
        content |= {"started_at": runs.utc_now(), "number": runs.next_number(run.folder)}
        manifest.write(run.folder / self.manifest, content)
        run.write(runs.MACHINE, machine.facts())
        return run

    def measure(self, campaign: Campaign, rounds: Rounds) -> int:
        """Start the processes and print their lines; return the exit code."""
        console, run, journal = campaign.console, rounds.run, self.journal
        rounds.say(f"Run {run.folder}")
        again = make_command(self.command, {"OUT": str(run.folder)})
        whole = campaign.request.again
        resume = f"Resume with{f': {whole}' if whole else f' the same command and {again}'}"
        for cell, reason in campaign.plan.impossible.items():
            rounds.say(f"{cell}: unsupported: {reason}")
        neighbours.await_quiet(console, campaign.on_gpu, campaign.sweep.force)
        try:
            with bench.resumable(lambda: resume):
                rounds.take(campaign.groups)
        except KeyboardInterrupt:
            journal.write_csv(run.folder, journal.read(run.folder))
            rounds.say(f"Stopped. {resume}")
            return INTERRUPTED
        records = journal.read(run.folder)
        journal.write_csv(run.folder, records)
        cells = self.cells(records)
        for number, cell in enumerate(cells):
            rounds.say("\n".join([""] * bool(number) + self.words.block(cell)))
        page = run.folder / f"{journal.name}.html"
        title = f"{journal.name.capitalize()}: {run.id}"
        durable.replace_text(page, self.page(cells, title, again))
        rounds.say(f"CSV: {run.folder / journal.table}  Page: {page}")
        ended = {record.status for record in records}
        return DONE if "ok" in ended and ended <= {"ok", "unsupported"} else INCOMPLETE


def _settings(campaign: Campaign, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that decide the result, as a manifest gives them back."""
    settings: dict[str, Any] = json.loads(json.dumps(user_models.kept({**campaign.given, **more}), default=str))
    return settings
