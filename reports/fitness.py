"""A self-check in words: a line per check, the verdict, and which differences can be trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.fitness import Check, Trial, reaches
from measurement.text import listed, percent, times

QUESTIONS = {  # by the rule
    "installed": "it is installed",
    "runs": "it runs",
    "sample cost": "timing a sample costs under 0.1 % of it",
    "clock": "the clock resolves a thousandth of a sample",
    "parent": "the waiting parent uses under 1 % of a core",
    "timer agrees": "an independent timer agrees within 2 %",
    "again agrees": "A/A: the same step twice agrees within 2 %",
    "again covered": "A/A: the interval contains 1",
}


def show(checks: Sequence[Check], trials: Sequence[Trial], repeats: int, console: Console) -> None:
    """Print a line per check, the verdict, and which differences can be trusted."""
    table = Table("", "check", "found", "holds")
    for check in checks:
        holds = "yes" if check.holds else Text("no", style="red")
        table.add_row(check.framework, question_of(check), found_in(check), holds)
    console.print(table)
    console.print(verdict(checks, repeats))
    console.print(trusted(trials), style="bold")


def question_of(check: Check) -> str:
    """Return the question of a check, as a clause."""
    values = check.values
    if check.rule == "threads":
        return f"it keeps at most {times(values['threads'], 'core')} busy"
    if check.rule in ("delay covered", "delay found"):
        slower = f"a step slowed by {percent(float(values['question']))}"
        found = check.rule == "delay found"
        return f"{slower} is found to be slower" if found else f"{slower}: the interval contains {values['truth']:.4f}"
    return QUESTIONS[check.rule]


def found_in(check: Check) -> str:
    """Return the result of a check, as a clause."""
    values = check.values
    if check.rule in ("installed", "runs"):
        return str(values["reason"])
    if check.rule == "sample cost":
        per_sample, sample, per_call = values["per_sample_s"], values["sample_s"], values["per_call_s"]
        return f"{per_sample * 1e6:.1f} µs of {sample * 1e3:.0f} ms, and {per_call * 1e9:.0f} ns a call"
    if check.rule == "clock":
        return f"steps of {values['step_s'] * 1e9:.0f} ns"
    if check.rule == "parent":
        return f"{percent(values['cores'], 2)} of a core"
    if check.rule == "threads":
        return f"at most {values['cores']:.2f} cores busy"
    found = values["found"]
    if not found:
        return "too few samples"
    if values["trials"] == 1:
        return "{:.4f} ({:.4f}–{:.4f})".format(*found[0][1])
    middle, farthest = median(interval.value for _, interval in found), max(found)[1].value
    return f"{values['held']} of {values['trials']}; median {middle:.4f}, farthest {farthest:.4f}"


def to_json(checks: Sequence[Check]) -> list[dict[str, object]]:
    """Return the checks as JSON-ready data."""
    return [
        {"framework": check.framework, "question": question_of(check), "found": found_in(check), "holds": check.holds}
        for check in checks
    ]


def trusted(trials: Sequence[Trial]) -> str:
    """Return which differences can be trusted on this machine: those beyond the reach, rounded up to half a percent."""
    found = reaches(trials)
    known = {name: value for name, value in found.items() if value is not None}
    unknown = [name for name in found if name not in known]
    if not found or unknown:
        whose = f" of {', '.join(unknown)}" if unknown else ""
        return f"There are too few samples{whose} to determine which differences can be trusted here."
    halves = {name: math.ceil(200 * value) / 2 for name, value in known.items()}
    each = ", ".join(f"{name} {value:g} %" for name, value in halves.items())
    return f"Differences above {max(halves.values()):g} % can be trusted here" + (
        f" ({each})." if len(halves) > 1 else "."
    )


def verdict(checks: Sequence[Check], repeats: int) -> str:
    """Return the answer in a sentence or two: which checks do not hold, by name."""
    failed = [check for check in checks if not check.holds]
    if not failed:
        return f"This machine is fit for measuring: all {len(checks)} checks hold."
    names = listed([f"{check.framework or 'the machine'}: {question_of(check)}" for check in failed], separator="; ")
    chance = "" if repeats > 1 else " On a quiet machine, one 95 % interval in twenty misses the truth."
    return (
        f"{len(checks) - len(failed)} of {len(checks)} checks hold. Failed: {names}. "
        f"Stop other work on the machine, or use a longer profile.{chance}"
    )
