"""The command `new`: write a user model's file to begin with, ready to be measured."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import frameworks
from measurement.places import as_typed
from measurement.refusals import UsageError, naming
from measurement.text import make_command
from plan.aliases import canonical, choose
from plan.options import Option

_FILE = "model.py"  # what a skeleton takes itself to be called


def having() -> list[str]:
    """Return the frameworks whose folder has a skeleton."""
    return [name for name in frameworks.NAMES if _path(name).is_file()]


def text(framework: str, file: str) -> str:
    """Return the skeleton as the text of a file of that name."""
    skeleton = _path(framework).read_text().replace(f"WORKLOAD={_FILE}", f"WORKLOAD={file}")
    return as_typed(skeleton)


def _path(framework: str) -> Path:
    return Path(frameworks.__file__).parent / framework / "user_model" / "skeleton.py"


def options() -> list[Option]:
    """Return the options of `new`."""
    return [
        Option("name", "name of the file, without .py"),
        Option("framework", f"one of {', '.join(having())} (default: torch)"),
    ]


def run(arguments: argparse.Namespace) -> int:
    """Write NAME.py here, and overwrite nothing. Raises UsageError."""
    name = arguments.name or ""
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise UsageError(f"NAME must consist of letters, digits and underscores, such as NAME=my_model, not {name!r}.")
    framework = choose(canonical("framework", arguments.framework or "torch"), having(), "template for framework")
    path = Path(f"{name}.py")
    try:
        with naming(path), open(path, "x") as file:
            file.write(text(framework, path.name))
    except FileExistsError:
        raise UsageError(f"{path} exists already; choose another NAME.") from None
    print(f"Created {path}. Put your model into it, then run {make_command('bench', {'WORKLOAD': path.name})}")
    return 0
