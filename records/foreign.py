"""Folders that somebody else may have written: the programs that they name, and links, which they must not contain.

Programs of a folder are run or installed only if it is in this checkout's `results/`, or if the command line names the
same programs. They are `PYTHON`, users' models (`WORKLOAD`), and the sides of a pair (`A`, `B`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from measurement.places import INSTALLED, RESULTS, RUNS
from measurement.refusals import UsageError
from measurement.text import make_command
from plan.sweep import split_words
from workloads.user_model import absolute, is_user_model


def is_own(folder: Path) -> bool:
    """Return whether a folder is in this checkout's `results/`."""
    return folder.resolve().is_relative_to(RESULTS.resolve())


def programs(folder: Path, given: Mapping[str, Any], **others: object) -> dict[str, str]:
    """Return the programs, by variable, that a command line must name to resume the folder; none in `results/`.

    `given` are the folder's flags; `others` are its other programs by variable, None if it names none.
    """
    if is_own(folder):
        return {}
    asked = split_words(given.get("workload") or ())
    named = {"WORKLOAD": ",".join(asked)} if any(map(is_user_model, asked)) else {}
    return named | {name: str(value) for name, value in others.items() if value is not None}


def command(target: str, folder: Path, named: Mapping[str, str]) -> str:
    """Return the command that resumes a folder, ready to paste into a shell."""
    place = folder.name if folder.parent == RUNS else str(folder)
    return make_command(target, {"RESUME": place, **named})


def check_named(target: str, folder: Path, named: Mapping[str, str], again: Mapping[str, object]) -> None:
    """Raise UsageError unless `again`, the command line's programs by variable or None, includes all of `named`."""
    if any(not _same(name, value, again.get(name)) for name, value in named.items()):
        outside = "" if INSTALLED else " is outside of this checkout's results/ and"
        raise UsageError(
            f"{folder}{outside} names programs to run "
            f"({', '.join(named)}); if you trust them: {command(target, folder, named)}"
        )


def _same(name: str, value: str, again: object) -> bool:
    """Return whether the command line names every program of `value`."""
    if again is None or name != "WORKLOAD":
        return again == value
    return _models(split_words(value)) <= _models(split_words(again))


def _models(named: Iterable[str]) -> set[str]:
    return {absolute(word) for word in named if is_user_model(word)}


def refuse_links(folder: Path) -> None:
    """Raise UsageError if a run's folder or its `processes` contains a link, before anything is written there."""
    for place in (folder, folder / "processes"):
        entries = sorted(place.iterdir()) if place.is_dir() else []
        if link := next(filter(Path.is_symlink, entries), None):
            raise UsageError(
                f"{link} is a link to {os.readlink(link)}, and a run writes only in its folder; remove the link, "
                f"then try again."
            )
