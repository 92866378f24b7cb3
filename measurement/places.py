"""Folders of the suite and its output: in its checkout, or outside if installed from a wheel.

Workers read them, so this needs the standard library alone.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

SUITE = Path(__file__).resolve().parent.parent  # the folder of all the suite's packages
INSTALLED = not (SUITE / "Makefile").is_file()
NAME = "eager-vs-graph"
RESULTS = SUITE / "results"
PROGRAM = "egvg" if INSTALLED else "make"  # the first word of the suite's commands
SPEAKER = NAME if INSTALLED else "runner.py"  # prefix of a command's error messages
_CACHES = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
CACHE = Path(_CACHES, NAME) if INSTALLED else SUITE / ".cache"  # of files that can be made again
VENVS = CACHE / "environments" if INSTALLED else SUITE / ".venvs"
RUNS = Path.cwd() / "egvg-runs" if INSTALLED else RESULTS / "runs"


def as_typed(text: str) -> str:
    """Return a text with its quoted commands as this installation spells them: `egvg bench` for `make bench`."""
    return text if PROGRAM == "make" else re.sub(r"(?<=`)make(?=[` ])|\bmake(?= [a-z-]+ [A-Z]+=)", PROGRAM, text)


def shown(path: Path) -> str:
    """Return a path as a user types it: relative to the suite or to the working folder, if inside."""
    for folder in (SUITE, Path.cwd()):
        if path.is_relative_to(folder):
            return str(path.relative_to(folder))
    return str(path)
