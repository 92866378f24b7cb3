"""The manifest of a run, a reproduction or a set of profiles: its options, with a digest that reveals damage.

The digest does not prevent malice: `foreign` decides which programs of a folder are run.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from measurement import durable
from measurement.refusals import UsageError
from records import jsonfiles

# The first file that `bench`, `reproduce`, `explain`, `ab`, `start` and `stream` write.
PLAN, REPRODUCTION, EXPLANATION, PAIR, STARTS, STREAMS = (
    *("plan.json", "reproduction.json", "explanation.json", "ab.json", "start.json", "stream.json"),
)
FILES = PLAN, REPRODUCTION, EXPLANATION, PAIR, STARTS, STREAMS
NODES = "nodes.jsonl"  # in a run's folder: the time of the control cell on each node of a cluster
# Entries that determine the measurement.
_DECIDING = ("given", "table", "device", "flags", "cells", "python", "sides", "own")


def write(path: Path, content: dict[str, Any]) -> None:
    """Write the file with its digest."""
    content = {**content, "digest": _digest(content)}
    durable.replace(path, (json.dumps(content, indent=2, default=str) + "\n").encode())


def read(path: Path) -> dict[str, Any]:
    """Return the content of the file. Raises UsageError if it is truncated or was changed.

    Older files have no digest and are read unchecked.
    """
    content = jsonfiles.read_object(path)
    if "digest" in content and content["digest"] != _digest(content):
        raise UsageError(f"{path} was changed after the run was started; restore it, or start a new run.")
    if "given" not in content and "table" not in content:
        raise UsageError(f"{path} does not record how the run was started; start a new run.")
    return content


def number_of(folder: Path) -> int:
    """Return a folder's number in the order of starts, which needs no clock; 0 if unknown."""
    for name in FILES:
        with contextlib.suppress(UsageError):
            if content := jsonfiles.read_object(folder / name):
                return content.get("number", 0)
    return 0


def in_order(folders: Iterable[Path]) -> list[Path]:
    """Return folders in the order in which they were started; those without a number come first, by name."""
    return sorted(folders, key=lambda folder: (number_of(folder), folder.name))


def _digest(content: dict[str, Any]) -> str:
    deciding = {name: content[name] for name in _DECIDING if name in content}
    return hashlib.sha256(json.dumps(deciding, sort_keys=True, default=str).encode()).hexdigest()
