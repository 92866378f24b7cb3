"""`selfcheck`: is this machine fit for measuring, and does the suite measure right on it? Answers in words.

Each framework runs a small workload against itself: the same step twice (A/A), slowed down by known shares, and under
an independent timer, all taken alternately as in a real run. What comes out is known beforehand. With WORKLOAD whole
runs of real models are repeated instead (`harness.repeatability`).
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

import frameworks
from harness import assemble, environments, fitness, plan, repeatability, runs, sweep
from harness.execute import Executor
from harness.fitness import Check, Trial
from harness.materials import Store
from harness.outcomes import Context, Outcome
from harness.plan import Bundle, Control, Group
from harness.progress import Bar
from measurement import machine
from reports import terminal

DELAYS = (0.02, 0.05, 0.10)
TRUTHS = {"again": 1.0, "timer": 1.0} | {f"{delay:g}": 1 / (1 + delay) for delay in DELAYS}
WORKLOAD, SMALLEST_BATCH = "mlp", 8


@contextlib.contextmanager
def load_on(cores: int) -> Iterator[None]:
    """Keep so many other processes busy: what a neighbour on the machine would do."""
    code = f"import os\nwhile os.getppid() == {os.getpid()}: pass"  # ends with this process, however that ends
    busy = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(cores)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def groups_under_check(framework: str, device: str, threads: int, repeats: int) -> tuple[Group, ...]:
    """One eager cell for each repeat, of a batch size of its own, with its controls."""
    batches = ",".join(str(SMALLEST_BATCH + number) for number in range(repeats))
    asked = {"framework": framework, "workload": WORKLOAD, "mode": "eager", "device": device, "batch": batches}
    groups = []
    for cell in plan.cells_of(sweep.resolve({**asked, "threads": str(threads)})):
        controls = [Control(f"{cell.id}~again", cell.id), Control(f"{cell.id}~timer", cell.id, own_timer=True)]
        controls += [Control(f"{cell.id}~{delay:g}", cell.id, delay=delay) for delay in DELAYS]
        groups.append(Group((cell,), frozenset({cell.id}), tuple(controls)))
    return tuple(groups)


def measure(groups: tuple[Group, ...], profile, interpreter: Path, bar: Bar) -> tuple[dict[str, Outcome], float]:
    """Outcomes of the cells and their controls by name, and how many cores the waiting parent kept busy."""
    first = groups[0].cells[0]
    store = Store(None, 0)
    store.prepare(groups, lambda text: None)
    context = Context("selfcheck", "", "", None, profile, "cold", {first.framework: ()})
    outcomes = {name: Outcome(g.cells[0]) for g in groups for name in (g.cells[0].id, *(c.id for c in g.controls))}
    with tempfile.TemporaryDirectory(prefix="selfcheck-") as folder:
        executor = Executor(
            run=runs.Run.create(f"{folder}/run"),
            sweep=sweep.resolve({}),
            profile=profile,
            context=context,
            display=bar,
            interpreters={(first.framework, first.device_kind): interpreter},
            materials=store,
            timeout_s=600,
            with_peaks=False,
        )
        before, start = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
        executor.run_launches(Bundle(groups), outcomes)
        bar.bundle_done(Bundle(groups))
        after, seconds = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter() - start
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return outcomes, used / seconds


def trials_of(group: Group, outcomes: dict[str, Outcome]) -> list[Trial]:
    """The ratios of a group's controls to its cell, beside what they should be."""
    cell = group.cells[0]
    return [
        Trial(cell.framework, name, truth, assemble.speedup(outcomes[f"{cell.id}~{name}"], outcomes[cell.id]))
        for name, truth in TRUTHS.items()
    ]


def check_framework(groups: tuple[Group, ...], device: str, threads: int, profile, interpreter: Path, bar: Bar):
    """All trials of one framework, and the answers they give."""
    framework = groups[0].cells[0].framework
    outcomes, parent_cores = measure(groups, profile, interpreter, bar)
    failures = [outcomes[g.cells[0].id].failure for g in groups if outcomes[g.cells[0].id].failure]
    if failures:
        return [], [Check(framework, "it runs", failures[0].reason, False)]
    trials = [trial for group in groups for trial in trials_of(group, outcomes)]
    checks = fitness.trial_checks(trials)
    cores = [median(report["cpu_per_wall"] for report in outcomes[g.cells[0].id].reports) for g in groups]
    if device == "cpu":
        checks.append(fitness.threads_check(framework, threads, cores))
    return trials, [*checks, fitness.parent_check(framework, parent_cores)]


def prepare(names: list[str], device: str, python: str | None, console: Console) -> tuple[dict[str, Path], list[Check]]:
    """The interpreters of the frameworks, and a check that does not hold for each that cannot be installed."""
    interpreters, missing = {}, []
    for name in names:
        own = None if frameworks.describe(name).oracle else python
        try:
            interpreters[name] = environments.ensure(name, device.split(":")[0], python=own, report=console.print)
        except environments.SetupError as error:
            missing.append(Check(name, "it is installed", str(error), False))
    return interpreters, missing


def seconds(groups: tuple[Group, ...], profile) -> float:
    """About how long the trials of one framework take."""
    controls = sum(len(group.controls) for group in groups)
    return plan.estimated_seconds(Bundle(groups), profile, "cold") + controls * profile.seconds_per_cell


def selfcheck(arguments) -> int:
    """Run all checks and print them; the exit code is 1 where one does not hold."""
    if arguments.workload:
        return repeatability.repeat(arguments)
    console = terminal.console()
    if arguments.repeats < 1 or arguments.load < 0:
        raise sweep.UsageError("REPEATS is a whole number from 1 up, LOAD one from 0 up.")
    asked = sweep.resolve({"framework": arguments.framework, "device": arguments.device, "threads": arguments.threads})
    profile = plan.profile_of(sweep.resolve({"profile": arguments.profile, "budget": arguments.budget}))
    device, threads = asked.axes["device"][0], asked.axes["threads"][0]
    interpreters, checks = prepare(asked.axes["framework"], device, arguments.python, console)
    checks = fitness.machine_checks(profile.sample_seconds) + checks
    groups = {name: groups_under_check(name, device, threads, arguments.repeats) for name in interpreters}
    cells = [group.cells[0] for members in groups.values() for group in members]
    trials = []
    estimates = {members[0].cells[0].id: seconds(members, profile) for members in groups.values()}
    with Bar(console, cells, estimates, lines=False) as bar:
        for name, interpreter in interpreters.items():
            with load_on(arguments.load):
                tried, answers = check_framework(groups[name], device, threads, profile, interpreter, bar)
            trials, checks = trials + tried, checks + answers
    checks += fitness.pooled_checks(trials) if arguments.repeats > 1 else []
    show(checks, trials, arguments.repeats, console)
    if arguments.out:
        asked = {"profile": profile.to_json(), "repeats": arguments.repeats, "load": arguments.load, "threads": threads}
        kept = {"machine": machine.facts(), "asked": asked}
        kept |= {"checks": [asdict(check) for check in checks], "trials": [trial.to_json() for trial in trials]}
        kept["trusted"] = fitness.trusted(trials)
        Path(arguments.out).write_text(json.dumps(kept, indent=1) + "\n")
    return int(not all(check.holds for check in checks))


def show(checks: list[Check], trials: list[Trial], repeats: int, console: Console) -> None:
    """Print a line a check, the verdict, and which differences can be trusted."""
    table = Table("", "check", "found", "holds")
    for check in checks:
        table.add_row(check.framework, check.question, check.found, "yes" if check.holds else "[red]no[/red]")
    console.print(table)
    console.print(fitness.verdict(checks, repeats), highlight=False)
    console.print(fitness.trusted(trials), style="bold", highlight=False)
