"""The words of a command line, by the options that a command declares: `--flag value`, `--flag=value`, `NAME=value`."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from measurement.refusals import UsageError
from plan.options import Option, check_unique

OF_MAKE = ("BOOTSTRAP_PYTHON", "WHEELHOUSE", "PADDLE_INDEX", "PADDLE_VERSION", "UPGRADE")  # variables of no command
HELP = "HELP"  # HELP=1 is --help, which make takes for itself
SKIP_OTHERS = "--skip-others"  # of several commands in one line each skips the variables of the others
_VARIABLE = re.compile(r"([^\W\d][\w-]*)=(.*)", re.DOTALL)


class Parser(argparse.ArgumentParser):
    """A parser that raises UsageError."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}.")


def parse(
    command: str, text: str, options: Sequence[Option], words: Sequence[str], every: Callable[[], Iterable[Option]]
) -> argparse.Namespace:
    """Return the arguments of a command; `every` returns the options of all commands. Raises UsageError."""
    check_unique(options)
    parser = Parser(prog=f"runner.py {command}", description=text)
    parser.add_argument(SKIP_OTHERS, action="store_true", help=argparse.SUPPRESS)
    for option in options:
        _add(parser, option)
    flags, placed, unknown = _read_variables(options, words)
    arguments, spare = parser.parse_known_args(flags)
    vars(arguments).update(placed)
    for name in unknown:
        known = [*OF_MAKE, *(option.name for option in every())]
        if not (arguments.skip_others and name in known):
            taken = [option.name for option in options]
            raise UsageError(_refusal(f"make {command}", "variable", name, taken, known))
    for word in spare:
        if not word.startswith("--"):
            raise UsageError(f"{command} takes no word {word!r}: write NAME=value or --name value.")
        taken, known = ([f"--{option.flag}" for option in some if not option.nargs] for some in (options, every()))
        raise UsageError(_refusal(command, "option", word.partition("=")[0], taken, known))
    return arguments


def _add(parser: Parser, option: Option) -> None:
    how: dict[str, Any] = {"default": option.default, "help": option.help.replace("%", "%%")}
    if option.switch:
        parser.add_argument(f"--{option.flag}", action="store_true", **how)
    elif option.nargs:
        parser.add_argument(option.attribute, nargs=option.nargs, metavar=option.name, **how)
    else:
        how |= {"nargs": "?", "const": option.alone} if option.alone else {}
        parser.add_argument(f"--{option.flag}", metavar=option.metavar, type=option.value, **how)


def _read_variables(options: Sequence[Option], words: Sequence[str]) -> tuple[list[str], dict[str, Any], list[str]]:
    """Return the words with flags in place of variables, values without a flag by attribute, and names of no option.

    A variable without a value is not given, as in make.
    """
    by_name = {option.name: option for option in options}
    flags: list[str] = []
    placed: dict[str, Any] = {}
    unknown: list[str] = []
    end = words.index("--") if "--" in words else len(words)
    for before, word in zip(["", *words], words[:end], strict=False):
        match = _VARIABLE.fullmatch(word)
        if match is None or _takes_next(before, options):
            flags.append(word)
            continue
        name, value = match.groups()
        option = by_name.get(name)
        if name == HELP:
            flags += ["--help"] if value not in ("", "0") else []
        elif option is None:
            unknown.append(name)
        elif value and option.nargs:
            placed[option.attribute] = [value] if option.nargs == "*" else value
        elif value and not option.switch:
            flags.append(f"--{option.flag}={value}")
        elif value not in ("", "0"):
            flags.append(f"--{option.flag}")
    return [*flags, *words[end:]], placed, unknown


def _takes_next(word: str, options: Iterable[Option]) -> bool:
    """Return whether a word is a flag, or begins like one, whose value is the next word."""
    valued = (option.flag for option in options if not (option.switch or option.nargs or option.alone))
    return len(word) > 2 and word.startswith("--") and any(flag.startswith(word[2:]) for flag in valued)


def _refusal(command: str, kind: str, given: str, taken: Sequence[str], known: Iterable[str]) -> str:
    """Return the sentence on a variable or option that a command does not take, or nothing takes."""
    if given in known:
        return f"{command} does not take {given}; it takes {' '.join(taken) or 'none'}."
    return f"There is no {kind} {given}; {suggestion(given, [*taken, *known])}"


def suggestion(given: str, known: Iterable[str]) -> str:
    """Return the end of a sentence on a name that is none: the nearest of those known."""
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(given.lower(), by_lower, 1, 0.5)
    return f"did you mean {by_lower[near[0]]}?" if near else "`make` lists them."
