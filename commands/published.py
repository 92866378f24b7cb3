"""Committed runs: their folders, and the command that measured each."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import frameworks
from commands import table
from measurement.text import make_command
from plan import suggestions, sweep
from plan.aliases import canonical
from plan.options import variable
from records import jsonfiles, manifest
from workloads import signature

UNPUBLISHED = "runs"  # what this machine measured, under results/ but not committed
# Plans of runs and of profiles, and the command that made them.
PLANS = {manifest.PLAN: "bench", manifest.EXPLANATION: "explain", manifest.STARTS: "start", manifest.STREAMS: "stream"}
# These hold the plans of runs whose records stand in one file, under `runs`.
JOINED = ("joined.json", manifest.REPRODUCTION)


def folders(results: Path) -> Iterator[Path]:
    """Return every folder that holds a run or profiles, in the order of their names."""
    every = {path.parent for name in (*PLANS, *JOINED) for path in results.glob(f"**/{name}")}
    return (path for path in sorted(every) if path.relative_to(results).parts[0] != UNPUBLISHED and plans(path))


def plans(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """Return the command and the plan of each run in a folder: one, or several that were joined."""
    read = jsonfiles.read_object
    if own := [(target, plan) for name, target in PLANS.items() if (plan := read(folder / name))]:
        return own[:1]
    return [(run["by"], run) for name in JOINED for run in read(folder / name).get("runs", ())]


def command(target: str, given: Mapping[str, object], measured: Sequence[Mapping[str, object]] = ()) -> str:
    """Return the command that repeats a run, from the flags in a plan, which somebody else may have written.

    Words that precede its variables may follow the command's name in `target`.

    The records `measured` by `start` or `stream` have their strategies, processes and kinds of caches.

    An absolute path is reduced to its name. A flag that is no option here is hidden: make would take it for a variable
    of its own, such as SHELL. A mode that exists no more is hidden too.
    """
    options = importlib.import_module(table.COMMANDS[target.split()[0]].module).options()
    known = {option.flag for option in options} & {"calls", *(option.flag for option in sweep.all_options())}
    for word in sweep.split_words(given.get("workload") or ()):
        known.update(signature.flags(word))  # of a user model, if its file is here
    given = {
        flag: value for flag, value in sweep.current(given, known).items() if value is not None and value is not False
    }
    if "mode" in given:
        modes = suggestions.mode_words(frameworks.NAMES)
        given["mode"] = [word for word in sweep.split_words(given["mode"]) if canonical("mode", word) in modes]
    words = {variable(flag): _value(value) for flag, value in given.items() if flag in known and value != []}
    return make_command(target, words | (_rounds(measured) if target in ("start", "stream") else {}))


def _rounds(measured: Sequence[Mapping[str, object]]) -> dict[str, str]:
    """Return the variables that select these records of rounds."""
    taken = {name: sorted({str(one[name]) for one in measured if name in one}) for name in ("strategy", "caches")}
    named = {variable(name): ",".join(values) for name, values in taken.items() if values}
    rounds = {one["round"] for one in measured if "round" in one}
    return named | ({"PROCESSES": str(len(rounds))} if rounds else {})


def _value(value: object) -> str:
    text = ",".join(map(str, value)) if isinstance(value, list) else "1" if value is True else str(value)
    return Path(text).name if text.startswith("/") else text
