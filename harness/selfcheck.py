"""`selfcheck`: is this machine fit for measuring, and does the suite measure right on it? Answers in words.

Each framework runs one small workload against itself: the same step twice (A/A), slowed down by a known share, and
under an independent timer, all taken alternately as in a real run. What comes out is known beforehand.
"""

from __future__ import annotations

import itertools
import json
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

import frameworks
from harness import assemble, environments, plan, runs, sweep
from harness.execute import Executor
from harness.materials import Store
from harness.outcomes import Context, Outcome
from harness.plan import Bundle, Control, Group
from measurement import machine
from measurement.sampling import Clocks, Contender, take_sample
from measurement.statistics import Interval

DELAYS = (0.02, 0.05, 0.10)
WITHIN = 0.02  # how far from 1 an A/A ratio may lie on a shared machine
TIMER_WITHIN = 0.02
NULL_SHARE = 0.001
THREADS_MARGIN = 0.1
WORKLOAD = "mlp"


@dataclass(frozen=True)
class Check:
    """One question with its answer."""

    framework: str
    question: str
    found: str
    holds: bool


class Silent:
    """A display that shows nothing."""

    def __getattr__(self, _name):
        return lambda *_: None


def null_overhead(samples: int = 2000) -> tuple[float, float]:
    """Seconds that a sample costs besides its calls, and that the harness adds to each call."""
    clocks = Clocks()
    contender = Contender("null", step=lambda: None, synchronize=lambda output: None)

    def seconds_each(calls: int) -> float:
        contender.calls_per_sample = calls
        start = clocks.wall()
        for _ in range(samples):
            take_sample(contender, clocks)
        return (clocks.wall() - start) / samples

    one, many = seconds_each(1), seconds_each(101)
    per_call = (many - one) / 100
    return one - per_call, per_call


def clock_step() -> float:
    """The smallest step seen between two readings of the clock, in seconds."""
    readings = [time.perf_counter() for _ in range(10_000)]
    return min(b - a for a, b in itertools.pairwise(readings) if b > a)


def machine_checks(sample_seconds: float) -> list[Check]:
    """Questions that no framework is needed for."""
    per_sample, per_call = null_overhead()
    step = clock_step()
    return [
        Check(
            "", "a sample's own cost is under 0.1 % of it",
            f"{per_sample * 1e6:.1f} µs of {sample_seconds * 1e3:.0f} ms, and {per_call * 1e9:.0f} ns a call",
            per_sample < NULL_SHARE * sample_seconds,
        ),
        Check(
            "", "the clock resolves a thousandth of a sample",
            f"steps of {step * 1e9:.0f} ns", step < 1e-3 * sample_seconds,
        ),
    ]  # fmt: skip


def group_under_check(framework: str, device: str, threads: int) -> Group:
    """The eager cell of the check's workload, with its controls."""
    asked = sweep.resolve(
        {"framework": framework, "workload": WORKLOAD, "mode": "eager", "device": device, "threads": str(threads)}
    )
    cell = plan.cells_of(asked)[0]
    controls = [Control(f"{cell.id}~again", cell.id), Control(f"{cell.id}~timer", cell.id, own_timer=True)]
    controls += [Control(f"{cell.id}~{delay:g}", cell.id, delay=delay) for delay in DELAYS]
    return Group((cell,), frozenset({cell.id}), tuple(controls))


def measure(framework: str, device: str, threads: int, profile, interpreter: Path) -> dict[str, Outcome]:
    """Outcomes of the cell and its controls, by what follows the `~`; the cell's own under an empty name."""
    group = group_under_check(framework, device, threads)
    cell = group.cells[0]
    bundle = Bundle((group,))
    store = Store(None, 0)
    store.prepare([group], lambda text: None)
    context = Context("selfcheck", "", "", None, profile, "cold", {})
    outcomes = {name: Outcome(cell) for name in (cell.id, *(control.id for control in group.controls))}
    with tempfile.TemporaryDirectory(prefix="selfcheck-") as folder:
        run = runs.Run.create(f"{folder}/run")
        executor = Executor(
            run=run,
            sweep=sweep.resolve({}),
            profile=profile,
            context=context,
            display=Silent(),
            interpreters={(framework, cell.device_kind): interpreter},
            materials=store,
            timeout_s=600,
            with_peaks=False,
        )
        executor.run_launches(bundle, outcomes)
    return {name.partition("~")[2]: outcome for name, outcome in outcomes.items()}


def framework_checks(framework: str, outcomes: dict[str, Outcome], threads: int) -> list[Check]:
    """The questions that a framework's outcomes answer."""
    eager = outcomes[""]
    if eager.failure:
        return [Check(framework, "it runs", eager.failure.reason, False)]
    same = assemble.speedup(outcomes["again"], eager)
    checks = [
        Check(framework, "A/A: the same step is equally fast, within 2 %", _words(same), _covers(same, 1.0, WITHIN))
    ]
    for delay in DELAYS:
        slowed = assemble.speedup(outcomes[f"{delay:g}"], eager)
        truth = 1 / (1 + delay)
        checks.append(
            Check(
                framework, f"a step slowed by {delay:.0%} is found to be {truth:.4f} as fast", _words(slowed),
                slowed is not None and slowed.low <= truth <= slowed.high,
            )
        )  # fmt: skip
    timed = assemble.speedup(outcomes["timer"], eager)
    agree = timed is not None and abs(timed.value - 1) <= TIMER_WITHIN
    checks.append(Check(framework, "an independent timer agrees within 2 %", _words(timed), agree))
    cores = median(report["cpu_per_wall"] for report in eager.reports)
    checks.append(
        Check(
            framework,
            f"{threads} thread{'s' if threads > 1 else ''} asked for",
            f"{cores:.2f} cores busy",
            cores <= threads + THREADS_MARGIN,
        )
    )
    return checks


def _covers(interval: Interval | None, truth: float, within: float) -> bool:
    return interval is not None and interval.low <= truth <= interval.high and abs(interval.value - truth) <= within


def _words(interval: Interval | None) -> str:
    return f"{interval.value:.4f} [{interval.low:.4f}, {interval.high:.4f}]" if interval else "too few samples"


def verdict(checks: list[Check]) -> str:
    """The answer in a sentence."""
    failed = [check for check in checks if not check.holds]
    if not failed:
        return f"This machine is fit for measuring: all {len(checks)} checks hold."
    names = sorted({check.framework or "the machine" for check in failed})
    return (
        f"{len(checks) - len(failed)} of {len(checks)} checks hold; look at {', '.join(names)}. A 95 % interval "
        "misses the truth in one of twenty checks on a quiet machine; if more fail, quieten it or use a longer profile."
    )


def selfcheck(arguments) -> int:
    """Run all checks and print them; the exit code is 1 where one does not hold."""
    console = Console()
    asked = sweep.resolve({"framework": arguments.framework, "device": arguments.device, "threads": arguments.threads})
    given = {"profile": arguments.profile, "budget": arguments.budget}
    profile = plan.profile_of(sweep.resolve(given))
    device, threads = asked.axes["device"][0], asked.axes["threads"][0]
    checks = machine_checks(profile.sample_seconds)
    for number in range(arguments.repeats):
        for framework in asked.axes["framework"]:
            console.print(f"{framework}, {number + 1} of {arguments.repeats} …", highlight=False)
            kind = device.split(":")[0]
            python = None if frameworks.describe(framework).oracle else arguments.python
            try:
                interpreter = environments.ensure(framework, kind, python=python, report=console.print)
            except environments.SetupError as error:
                checks.append(Check(framework, "it is installed", str(error), False))
                continue
            # A new order of measuring each time.
            outcomes = measure(framework, device, threads, replace(profile), interpreter)
            checks += framework_checks(framework, outcomes, threads)
    show(checks, console)
    if arguments.out:
        Path(arguments.out).write_text(
            json.dumps({"machine": machine.facts(), "checks": [vars(check) for check in checks]}, indent=1) + "\n"
        )
    return int(not all(check.holds for check in checks))


def show(checks: list[Check], console: Console) -> None:
    """Print a line a check, and the verdict."""
    table = Table("", "check", "found", "holds")
    for check in checks:
        table.add_row(check.framework, check.question, check.found, "yes" if check.holds else "[red]no[/red]")
    console.print(table)
    console.print(verdict(checks), highlight=False)
