"""Shell completion: a static script that `shtab` makes from the parsers of all commands."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence

import experiments
import frameworks
import workloads
from commands import command_line, table
from measurement.profiles import PROFILES
from measurement.refusals import UsageError
from plan import suggestions, sweep
from plan.options import Option

SHELLS = ("bash", "zsh", "fish")
PROGRAM, SHORT = "eager-vs-graph", "egvg"  # the console commands of the wheel
FLAG = "--print-completion"
PATHS = (
    *("out", "sweep", "python", "requirements", "weights", "scratch", "lines", "gather", "site", "collect"),
    *("from", "resume", "run", "a", "b"),
)


def values() -> Mapping[str, Iterable[str]]:
    """Return the values that are completed, by flag."""
    return {
        "framework": ("all", *frameworks.NAMES),
        "mode": suggestions.mode_words(frameworks.NAMES),
        "workload": workloads.names(),
        "impl": sweep.IMPLEMENTATIONS,
        "pass": sweep.PASSES,
        "dtype": sweep.DTYPES,
        "shapes": sweep.SHAPES,
        "device": ("cpu", "gpu", "gpu:all"),
        "profile": tuple(PROFILES),
        "compile-cache": ("cold", "warm"),
        "preset": sweep.presets(),
        "table": experiments.names(),
    }


def script(shell: str, options: Callable[[table.Command], Sequence[Option]]) -> str:
    """Return the script for a shell; `options` returns those of a command. Raises UsageError."""
    if shell not in SHELLS:
        raise UsageError(f"{FLAG} takes {', '.join(SHELLS[:-1])} or {SHELLS[-1]}, not {shell!r}.")
    try:
        import shtab
    except ImportError:
        raise UsageError(f"Shell completion needs shtab: pip install '{PROGRAM}[completion]'.") from None
    scripts = [shtab.complete(parser(program, options, shtab.FILE), shell) for program in (PROGRAM, SHORT)]
    if shell == "zsh":  # a file has one function and names the commands that it is for
        return (
            scripts[0]
            .replace(f"#compdef {PROGRAM}", f"#compdef {PROGRAM} {SHORT}", 1)
            .replace(f" -N {PROGRAM}\n", f" -N {PROGRAM} {SHORT}\n")
        )
    return "\n".join(scripts)


def parser(
    program: str, options: Callable[[table.Command], Sequence[Option]], files: object
) -> argparse.ArgumentParser:
    """Return one parser of all commands, whose actions have their values, and those of PATHS `files`."""
    whole = argparse.ArgumentParser(prog=program)
    whole.add_argument(FLAG, choices=SHELLS, help="print the completion for a shell")
    commands = whole.add_subparsers()
    known = {flag.replace("-", "_"): list(words) for flag, words in values().items()}
    for command in table.COMMANDS.values():
        of_command = command_line.parser_of(command.name, command.help, options(command), commands)
        for action in of_command._actions:
            if action.dest in known:
                action.choices = known[action.dest]
            elif action.dest in PATHS:
                action.complete = files  # type: ignore[attr-defined]
    return whole
