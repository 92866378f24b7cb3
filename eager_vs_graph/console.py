"""The console command: the runner's command line, with a model first and the user's own interpreter."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

HERE = Path(__file__).resolve().parent
SUITE = HERE if (HERE / "runner.py").is_file() else HERE.parent  # installed, or a checkout
LOCKED = "locked"  # the word for environments of the suite's own versions


def main() -> NoReturn:
    """Run the words of the command line and exit with the runner's code."""
    sys.path.insert(0, str(SUITE))
    import runner

    runner.run_and_exit(lambda: completed(sys.argv[1:]))


def completed(words: Sequence[str]) -> list[str]:
    """Return the runner's words: a model's file alone is measured, with the interpreter that has a framework.

    Raises UsageError where no interpreter has one and the words name none.
    """
    from commands import table
    from measurement.refusals import UsageError
    from workloads.user_model import is_user_model

    words = list(words) or ["--help"]
    if is_user_model(words[0]):
        words[:1] = ["bench", "--workload", words[0]]
    if words[0] in ("start", "stream") and len(words) > 1 and is_user_model(words[1]):
        words.insert(1, "--workload")
    command = table.COMMANDS.get(words[0])
    if command is None and Path(words[0]).exists():
        raise UsageError(f"{words[0]} is no Python file: give the path of a .py file with model() and inputs().")
    if command is None or not command.measures or {"-h", "--help", "HELP=1"} & set(words):
        return words
    named = [place for place, word in enumerate(words) if word.startswith(("PYTHON=", "--python"))]
    if named:
        python, others = _taken(words, named[-1])
        with_what = "in the suite's own environments" if python == LOCKED else f"with {python}"
        print(f"Measuring {with_what} (--python).", file=sys.stderr)
        return others if python == LOCKED else words  # the runner uses locked environments by default
    interpreter, whose, frameworks = _interpreter()
    print(f"Measuring with {interpreter} ({whose}), which has {' and '.join(frameworks)}.", file=sys.stderr)
    words += ["--python", interpreter]
    if not any(word.startswith(("FRAMEWORK=", "--framework", "--workload", "WORKLOAD=", "--preset")) for word in words):
        words += ["--framework", ",".join(frameworks)]
    return words


def _taken(words: list[str], place: int) -> tuple[str, list[str]]:
    """Return the value of the option or variable at a place, and the words without both."""
    _, equals, value = words[place].partition("=")
    if equals:
        return value, [*words[:place], *words[place + 1 :]]
    return "".join(words[place + 1 : place + 2]), [*words[:place], *words[place + 2 :]]


def _interpreter() -> tuple[str, str, list[str]]:
    """Return the interpreter to measure with, whose it is, and its frameworks: this one, else the active environment's.

    Raises UsageError where neither has a framework.
    """
    from measurement.refusals import UsageError
    from workloads.signature import MODULES

    modules = {name: known[0] for name, known in MODULES.items()}
    own = [name for name, module in modules.items() if _is_package(module)]
    if own:
        return sys.executable, "this command's environment", own
    active = os.environ.get("VIRTUAL_ENV")
    if active and Path(active).resolve() != Path(sys.prefix).resolve():
        python = str(Path(active) / "bin" / "python")
        if found := _installed_for(python, modules):
            return python, "the active environment", found
    raise UsageError(
        f"{sys.prefix} has no PyTorch, JAX, TensorFlow or PaddlePaddle: install one there, name an interpreter "
        f"that has one with --python PATH, or install the suite's own with --python {LOCKED} (some GB)."
    )


def _is_package(module: str) -> bool:
    """Return whether a module is installed here; a folder of its name without `__init__.py` is none."""
    spec = importlib.util.find_spec(module)
    return spec is not None and spec.origin is not None


def _installed_for(python: str, modules: dict[str, str]) -> list[str]:
    """Return which frameworks, of these with their modules, an interpreter has; none where it does not run."""
    from environments import environments

    try:
        lacking = environments.lacking(Path(python), [[module] for module in modules.values()])
    except environments.SetupError:
        return []
    return [name for name, module in modules.items() if module not in lacking]
