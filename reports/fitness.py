"""A self-check in words: a line a check, the verdict, and which differences can be trusted."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis.fitness import Check, Trial, reaches

MOST_NAMED = 3  # of the checks that do not hold: the table has them all


def show(checks: Sequence[Check], trials: Sequence[Trial], repeats: int, console: Console) -> None:
    """Print a line a check, the verdict, and which differences can be trusted."""
    table = Table("", "check", "found", "holds")
    for check in checks:
        holds = "yes" if check.holds else Text("no", style="red")
        table.add_row(check.framework, check.question, check.found, holds)
    console.print(table)
    console.print(verdict(checks, repeats), highlight=False)
    console.print(trusted(trials), style="bold", highlight=False)


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
    names = "; ".join(f"{check.framework or 'the machine'}: {check.question}" for check in failed[:MOST_NAMED])
    names += f"; and {len(failed) - MOST_NAMED} more" if len(failed) > MOST_NAMED else ""
    chance = "" if repeats > 1 else " On a quiet machine, one 95 % interval in twenty misses the truth."
    return (
        f"{len(checks) - len(failed)} of {len(checks)} checks hold. Failed: {names}. "
        f"Stop other work on the machine, or use a longer profile.{chance}"
    )
