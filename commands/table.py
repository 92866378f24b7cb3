"""The table of commands: the parser, the help, the test of make's targets and shell completion are made from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from measurement import places, refusals
from plan.options import variable


@dataclass(frozen=True)
class Command:
    """A command: its module, with `options()` and `run(arguments)`, its line of help and an example of a variable.

    `forms` are modules that do its work instead, each by the flag that chooses it. A command that `measures` starts
    workers, with the interpreter that PYTHON names.
    """

    name: str
    module: str
    help: str
    example: str = ""
    forms: Mapping[str, str] = field(default_factory=dict)
    measures: bool = False


@dataclass(frozen=True)
class Former:
    """A former name of a command: the words that it stands for, and flags that have another name now."""

    command: str
    words: tuple[str, ...] = ()
    renamed: Mapping[str, str] = field(default_factory=dict)
    shown: str = ""  # variables of the new form, as a user types them


GROUPS: Mapping[str, tuple[Command, ...]] = {
    "Measure": (
        Command("bench", "commands.bench", "eager mode against graph modes", "WORKLOAD=mlp", measures=True),
        Command("ab", "commands.ab", "two versions or environments, interleaved", "VERSIONS=V,V"),
        Command("start", "commands.start", "time from exec to the first right answer", "PROCESSES=10", measures=True),
        Command("stream", "commands.stream", "calls of different lengths", "LENGTHS=chat", measures=True),
        Command(
            "reproduce",
            "commands.reproduce",
            "a published table; without TABLE: a list",
            "TABLE=paddle-bert",
            measures=True,
        ),
        Command("publish", "publish.edition", "measure what an edition lacks", "PLACE=h100", measures=True),
    ),
    "Explain": (
        Command("explain", "commands.explain", "where a call's time goes, by mode", "MODE=eager,graph", measures=True),
        Command("ladder", "commands.ladder", "what each step to the last graph brings", measures=True),
    ),
    "Report and compare": (
        Command(
            "report",
            "commands.report",
            "tables and a page; WATCH GATHER SITE",
            "RUN=newest",
            {"watch": "commands.watch", "gather": "commands.gather", "site": "publish.site"},
        ),
        Command(
            "compare", "commands.compare", "two runs; three or more: a history", "A=RUN B=RUN",
            {"history": "commands.history"},
        ),
        Command("export", "commands.export", "a run for other tools", "FORMAT=csv"),
    ),
    "Set up and check": (
        Command("list", "commands.inventory", "workloads, presets, modes: what runs here", "FRAMEWORK=jax"),
        Command("new", "commands.new", "a file for your own model", "NAME=my_model"),
        Command(
            "setup", "commands.setup", "make environments, or COLLECT packages", "FRAMEWORK=jax",
            {"collect": "commands.wheelhouse"},
        ),
        Command("doctor", "commands.doctor", "is this machine fit for measuring?", "REPEATS=20", measures=True),
    ),
}  # fmt: skip
COMMANDS = {command.name: command for group in GROUPS.values() for command in group}
# They go with the next release.
FORMER = {
    "history": Former("compare", ("HISTORY=1",), shown="RUN=A,B,C"),
    "watch": Former("report", ("WATCH=1",), shown="WATCH=1"),
    "gather": Former(
        "report", (f"GATHER={places.RUNS / 'gathered.csv'}",), {"out": "gather"}, shown="RUN=A,B GATHER=all.csv"
    ),
    "site": Former("report", ("SITE=site",), {"out": "site"}, shown="SITE=site"),
    "new-workload": Former("new", shown="NAME=my_model"),
    "selfcheck": Former("doctor"),
    "wheelhouse": Former("setup", ("COLLECT=wheelhouse",), {"out": "collect"}, shown="COLLECT=FOLDER"),
}
# Targets of make in a checkout that run no command.
MAKE_ONLY = {
    "test [FRAMEWORK=jax]": "all; test-fast: without frameworks",
    "lint": "ruff, mypy and the language of the pages",
    "lock [UPGRADE=1]": "compile the lock files",
    "clean": "remove environments and caches",
}
CODES = "Exit codes: " + ", ".join(f"{code} {refusals.MEANINGS[code]}" for code in range(4))
WIDTH = 80
_COLUMN = 36  # where the help of a command begins


def current(command: str, words: Sequence[str]) -> tuple[str, list[str], str | None]:
    """Return a command and its words under their names of today, and the sentence on a former name or None."""
    former = FORMER.get(command)
    if former is None:
        return command, list(words), None
    shown = " ".join(filter(None, (former.command, former.shown)))
    sentence = f"`make {command}` is now `make {shown}`; the next release removes the former name."
    return former.command, [*former.words, *(renamed(word, former.renamed) for word in words)], sentence


def renamed(word: str, former: Mapping[str, str]) -> str:
    """Return a word that names a flag or variable with its name of today."""
    name, equals, value = word.partition("=")
    for old, new in former.items():
        for before, now in ((f"--{old}", f"--{new}"), (variable(old), variable(new))):
            if name == before and (equals or word.startswith("--")):
                return f"{now}{equals}{value}"
    return word


def help_text(program: str = places.PROGRAM) -> str:
    """Return the help in groups, a line for each command; `make`'s own targets only for make."""
    if program == "make":
        begin = "make bench FRAMEWORK=torch WORKLOAD=mlp", "make report"
        options = "make COMMAND HELP=1"
    else:
        begin = f"{program} my_model.py", f"{program} report"
        options = f"{program} COMMAND --help"
    lines = [f"Begin with `{begin[0]}`, then `{begin[1]}`.", f"`{options}` lists the options of a command."]
    for title, group in GROUPS.items():
        lines += ["", title]
        lines += [_line(f"{program} {one.name} {_example(one.example, program)}", one.help) for one in group]
    if program == "make":
        lines += ["", "In a checkout", *(_line(f"make {name}", text) for name, text in MAKE_ONLY.items())]
    return "\n".join([*lines, "", CODES]) + "\n"


def _line(words: str, text: str) -> str:
    return f"  {words.strip():{_COLUMN}}{text}"


def _example(example: str, program: str) -> str:
    """Return variables as make takes them; as flags, and runs without one, for another program."""
    if program == "make":
        return example
    pairs = (word.partition("=") for word in example.split())
    return " ".join(value if value in ("RUN", "newest") else f"--{name.lower()} {value}" for name, _, value in pairs)
