"""The table of commands: the parser, the help, the test of make's targets and shell completion are made from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from measurement import places, refusals


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


GROUPS: Mapping[str, tuple[Command, ...]] = {
    "Measure": (
        Command("bench", "commands.bench", "eager mode against graph modes", "WORKLOAD=mlp", measures=True),
        Command("ab", "commands.ab", "two versions or environments, interleaved", "VERSIONS=V,V"),
        Command("start", "commands.start", "time from exec to the first correct answer", "PROCESSES=10", measures=True),
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
