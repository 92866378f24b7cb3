"""The command `doctor`: is this machine fit for measuring, and does the suite measure right on it?

Each framework runs a small workload against itself: the same step twice (A/A), slowed down by known shares, and under
an independent timer. All are interleaved as in a real run, and the result is known beforehand. With WORKLOAD whole runs
of real models are repeated instead (`commands.repeatability`).
"""

from __future__ import annotations

import argparse
import json
import resource
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

import frameworks
from analysis import fitness
from analysis.fitness import Check, Trial
from commands import repeatability, rounds
from environments import environments
from execution import campaign as campaigns
from execution.campaign import Campaign, Request
from execution.execute import Executor
from execution.progress import Bar, duration
from execution.recorder import Recorder
from measurement import durable, machine
from measurement.protocol import Control
from measurement.text import times
from plan import plan, sweep
from plan.options import Option, chosen
from plan.plan import Bundle, Group
from records import assemble, runs
from records.cell_result import CellResult
from reports import fitness as report
from reports import terminal

DELAYS = (0.02, 0.05, 0.10)
TRUTHS = {"again": 1.0, "timer": 1.0} | {f"{delay:g}": 1 / (1 + delay) for delay in DELAYS}
WORKLOAD, SMALLEST_BATCH = "mlp", 8
TIMEOUT_S = 600


def request_for(framework: str, arguments: argparse.Namespace) -> Request:
    """Return a request of one eager cell for each repeat, of a batch size of its own."""
    batches = ",".join(str(SMALLEST_BATCH + number) for number in range(arguments.repeats))
    flags = {name: getattr(arguments, name) for name in ("device", "threads", "profile", "budget")}
    flags |= {"framework": framework, "workload": WORKLOAD, "mode": "eager", "batch": batches}
    return Request(flags, timeout=TIMEOUT_S)


def groups_under_check(campaign: Campaign) -> tuple[Group, ...]:
    """Return each of the campaign's cells with its controls."""
    groups = []
    for cell in campaign.plan.cells:
        controls = [Control(f"{cell.id}~again", cell.id), Control(f"{cell.id}~timer", cell.id, own_timer=True)]
        controls += [Control(f"{cell.id}~{delay:g}", cell.id, delay=delay) for delay in DELAYS]
        groups.append(Group((cell,), frozenset({cell.id}), tuple(controls)))
    return tuple(groups)


def measure(campaign: Campaign, groups: tuple[Group, ...], bar: Bar) -> tuple[dict[str, CellResult], float]:
    """Return the results of cells and controls by name, and how many cores the waiting parent kept busy."""
    campaign.make(groups)
    results = {name: CellResult(g.cells[0]) for g in groups for name in (g.cells[0].id, *(c.id for c in g.controls))}
    with tempfile.TemporaryDirectory(prefix="doctor-") as folder:
        made = runs.Run.create(f"{folder}/run")
        recorder = Recorder(made, campaign.context("doctor"), bar, campaign.store, with_peaks=False)
        executor = Executor(campaign.launcher(made), recorder, bar)
        before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        executor.run_processes(Bundle(groups), results)
        bar.bundle_done(Bundle(groups))
        after, seconds = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter() - start
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return results, used / seconds


def trials_of(group: Group, results: dict[str, CellResult]) -> list[Trial]:
    """Return the ratios of a group's controls to its cell, with their expected values."""
    cell = group.cells[0]
    return [
        Trial(cell.framework, name, truth, assemble.speedup(results[f"{cell.id}~{name}"], results[cell.id]))
        for name, truth in TRUTHS.items()
    ]


def check_framework(campaign: Campaign, bar: Bar) -> tuple[list[Trial], list[Check]]:
    """Return all trials of one framework, and their answers."""
    first, groups = campaign.plan.cells[0], groups_under_check(campaign)
    framework = first.framework
    results, parent_cores = measure(campaign, groups, bar)
    failures = [failure for g in groups if (failure := results[g.cells[0].id].failure)]
    if failures:
        return [], [Check(framework, "runs", False, {"reason": failures[0].reason})]
    trials = [trial for group in groups for trial in trials_of(group, results)]
    checks = fitness.trial_checks(trials)
    cores = [median(report.cpu_per_wall or 0.0 for report in results[g.cells[0].id].reports) for g in groups]
    if first.device == "cpu":
        checks.append(fitness.threads_check(framework, first.threads, cores))
    return trials, [*checks, fitness.parent_check(framework, parent_cores)]


def prepare(names: list[str], arguments: argparse.Namespace, console: Console) -> tuple[list[Campaign], list[Check]]:
    """Return a campaign for each framework, and a failed check for each that cannot be installed."""
    campaigns, missing = [], []
    for name in names:
        campaign = Campaign.start(request_for(name, arguments), console)
        kind = campaign.plan.cells[0].device_kind
        python = None if frameworks.describe(name).is_reference else arguments.python
        try:
            campaign.interpreters = {(name, kind): environments.ensure(name, kind, python=python, report=console.print)}
        except environments.SetupError as error:
            missing.append(Check(name, "installed", False, {"reason": str(error)}))
        else:
            campaigns.append(campaign)
    return campaigns, missing


def seconds(campaign: Campaign) -> float:
    """Estimate how long the trials of one framework take."""
    groups = groups_under_check(campaign)
    controls = sum(len(group.controls) for group in groups)
    whole = plan.estimated_seconds(Bundle(groups), campaign.profile, "cold")
    return whole + controls * campaign.profile.seconds_per_cell


def options() -> list[Option]:
    """Return the options of `doctor`."""
    of_bench = campaigns.all_options()
    return [
        *chosen(of_bench, "framework device threads profile budget", help="as in bench"),
        *chosen(of_bench, "workload impl mode seq", help="repeat whole runs of these; PROFILE may then be a list"),
        Option("repeats", "trials per framework; with WORKLOAD whole runs (default: 1)", default=1, parse=int),
        Option("python", "check with this interpreter instead of the locked environments"),
        Option("out", "JSON file for the checks; with WORKLOAD the folder for the runs", "PATH"),
    ]


def run(arguments: argparse.Namespace) -> int:
    """Check that this machine is fit for measuring and that the suite measures correctly; exit code 1 if not."""
    rounds.check_from_1("REPEATS", arguments.repeats)
    if arguments.workload:
        return repeatability.repeat(arguments)
    console = terminal.console()
    chosen = sweep.resolve({"framework": arguments.framework, "device": arguments.device, "threads": arguments.threads})
    profile = plan.profile_of(sweep.resolve({"profile": arguments.profile, "budget": arguments.budget}))
    threads = chosen.axes["threads"][0]
    campaigns, checks = prepare(chosen.axes["framework"], arguments, console)
    checks = fitness.machine_checks(profile.sample_seconds) + checks
    trials: list[Trial] = []
    cells = [cell for campaign in campaigns for cell in campaign.plan.cells]
    estimates = {campaign.plan.cells[0].id: seconds(campaign) for campaign in campaigns}
    console.print(f"{times(len(campaigns), 'framework')}, about {duration(sum(estimates.values()))}.")
    with Bar(console, cells, estimates, lines=False) as bar:
        for campaign in campaigns:
            tried, answers = check_framework(campaign, bar)
            trials, checks = trials + tried, checks + answers
    checks += fitness.pooled_checks(trials) if arguments.repeats > 1 else []
    report.show(checks, trials, arguments.repeats, console)
    if arguments.out:
        conditions = {"profile": asdict(profile), "repeats": arguments.repeats, "threads": threads}
        kept: dict[str, Any] = {"machine": machine.facts(), "asked": conditions}
        kept |= {"checks": report.to_json(checks), "trials": [trial.to_json() for trial in trials]}
        kept["trusted"] = report.trusted(trials)
        durable.replace(Path(arguments.out), (json.dumps(kept, indent=1) + "\n").encode())
    return int(not all(check.holds for check in checks))
