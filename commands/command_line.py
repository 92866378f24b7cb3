"""The words of a command line, by the options that a command declares: `--flag value`, `--flag=value`, `NAME=value`."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NoReturn

from commands import table
from measurement.places import INSTALLED, PROGRAM, SPEAKER
from measurement.refusals import UsageError
from plan import sweep
from plan.options import Option, check_unique, variable
from workloads.signature import flag_of

OF_MAKE = ("BOOTSTRAP_PYTHON", "WHEELHOUSE", "PADDLE_INDEX", "PADDLE_VERSION", "UPGRADE")  # variables of no command
HELP = "HELP"  # HELP=1 is --help, which make takes for itself
SKIP_OTHERS = "--skip-others"  # of several commands in one line each skips the variables of the others
MOST_UNGROUPED = 8  # options of a command whose help needs no groups
PARAMETERS = "parameters of the workload, also as -p NAME=VALUE"
WHAT, WHERE, READ = "what to measure", "where it runs", "which cells"
MEASURING = ("profile", "timeout")  # options of a command that measures: it has one of them
# Groups of the help, and the flags in each.
GROUPS = {
    WHAT: "framework workload strategy lengths calls caches impl mode pass dtype shapes unseen-seq weights sweep "
    "preset table filter seed",
    "how long and how carefully": "profile budget processes timeout isolate compile-cache policy force energy repeats",
    WHERE: "device threads python requirements",
    "on a cluster": "launcher nodes partition account time gres constraint lines scratch container",
    "output": "out resume dry-run json max-slowdown across watch gather site from edition place minutes",
}
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
    parser = parser_of(command, text, options)
    words, odd = _read_parameters(options, words)
    words = _under_declared_names(options, words)
    flags, placed, unknown = _read_variables(options, words)
    arguments, spare = parser.parse_known_args(flags)
    vars(arguments).update(placed)
    for name in odd:
        in_files = sweep.given_in_files(*(getattr(arguments, flag, None) for flag in ("sweep", "preset")))
        own = {flag: value for flag in ("workload", "pass") if (value := getattr(arguments, flag, None))}
        raise UsageError(sweep.no_parameter(name, in_files | own))
    for name in unknown:
        known = [*OF_MAKE, HELP, *(option.name for option in every())]
        if not (arguments.skip_others and name in known):
            taken = [option.name for option in options]
            raise UsageError(_refusal(f"{PROGRAM} {command}", "variable", name, taken, known))
    for word in spare:
        if not word.startswith("--"):
            raise UsageError(f"{command} does not take the argument {word!r}: write NAME=value or --name value.")
        taken, known = ([f"--{option.flag}" for option in some if not option.nargs] for some in (options, every()))
        raise UsageError(_refusal(command, "option", word.partition("=")[0], taken, known))
    return arguments


def parser_of(command: str, text: str, options: Sequence[Option], among: Any = None) -> argparse.ArgumentParser:
    """Return the parser of a command, with its options in groups where they are many; `among` other subparsers."""
    program = f"{PROGRAM if INSTALLED else SPEAKER} {command}"
    placed = [option.name for option in options if option.nargs]
    description = re.sub(r"\s*Raises \w+\.", "", text.partition("\n\n")[0])
    usage = " ".join([program, *(f"[{name} …]" for name in placed), "[options]"])
    made = partial(among.add_parser, command, help=text) if among else Parser
    parser: argparse.ArgumentParser = made(prog=program, usage=usage, description=description, epilog=table.CODES)
    parser.add_argument(SKIP_OTHERS, action="store_true", help=argparse.SUPPRESS)
    titles = _titles(options)
    for title in dict.fromkeys((*GROUPS, PARAMETERS, *titles)):
        within = [option for option, its in zip(options, titles, strict=True) if its == title]
        group = parser.add_argument_group(title) if within and title else parser
        if within and title == PARAMETERS:
            group.add_argument("-p", metavar="NAME=VALUE", help="any of these, as often as needed: -p batch=1,8")
        for option in within:
            _add(group, option)
    return parser


def _titles(options: Sequence[Option]) -> list[str]:
    """Return the group of each option in the help; empty for one that needs none, as where options are few."""
    if len(options) <= MOST_UNGROUPED:
        return [""] * len(options)
    groups = {flag: title for title, flags in GROUPS.items() for flag in flags.split()}
    titles = [PARAMETERS if option.parameter else groups.get(option.flag, "") for option in options]
    if any(option.flag in MEASURING for option in options):
        return titles
    return [READ if title in (WHAT, WHERE) else title for title in titles]  # a command that only reads


def _add(parser: argparse._ActionsContainer, option: Option) -> argparse.Action:
    how: dict[str, Any] = {"default": option.default, "help": option.help.replace("%", "%%")}
    if option.switch:
        return parser.add_argument(f"--{option.flag}", action="store_true", **how)
    if option.nargs:
        return parser.add_argument(option.attribute, nargs=option.nargs, metavar=option.name, **how)
    how |= {"nargs": "?", "const": option.alone} if option.alone else {}
    return parser.add_argument(f"--{option.flag}", metavar=option.metavar, type=option.value, **how)


def _read_parameters(options: Sequence[Option], words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words with the flag in place of each `-p name=value`, and the names of no parameter.

    Raises UsageError for `-p` without a name and a value.
    """
    flags = {option.flag for option in options if option.parameter}
    if not flags:
        return list(words), []
    flags |= {*sweep.ALSO}
    read: list[str] = []
    unknown: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--" or not word.startswith("-p"):
            read += [word, *rest] if word == "--" else [word]
            continue
        given = word[2:] or next(rest, "")
        name, equals, value = given.partition("=")
        if not (name and equals and value):
            raise UsageError(f"-p takes NAME=VALUE, such as -p batch=8, not {given!r}.")
        if (flag := flag_of(name.lower().replace("-", "_"))) in flags:
            read.append(f"--{flag}={value}")
        else:
            unknown.append(name)
    return read, unknown


def _under_declared_names(options: Sequence[Option], words: Sequence[str]) -> list[str]:
    """Return the words with the flags and variables that the command declares in place of their other names."""
    flags = {option.flag for option in options}
    others = {old: new for old, new in sweep.ALSO.items() if new in flags and old not in flags}
    names = {f"--{old}": f"--{new}" for old, new in others.items()}
    names |= {variable(old): variable(new) for old, new in others.items()}
    read = []
    for before, word in zip(["", *words], words, strict=False):
        name, equals, value = word.partition("=")
        is_other = name in names and (equals or word.startswith("--")) and not _takes_next(before, options)
        read.append(f"{names[name]}{equals}{value}" if is_other else word)
    return read


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
    lister = "--help" if given.startswith("--") else f"{HELP}=1"
    return f"There is no {kind} {given}; {suggestion(given, [*taken, *known], lister)}"


def suggestion(given: str, known: Iterable[str], lister: str) -> str:
    """Return the end of a sentence on a name that is none: the nearest of those known, or what lists them."""
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(given.lower(), by_lower, 1, 0.5)
    return f"did you mean {by_lower[near[0]]}?" if near else f"`{lister}` lists them."
