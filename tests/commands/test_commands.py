"""Commands: what the suite prints can be pasted as it is, and make hands every value on without running any of it."""

from __future__ import annotations

import ast
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import ROOMS, ROOT, listed_files
from doubles.reported import small_set, write_run

import frameworks
import runner
from commands import ab, bench, command_line, published, table
from commands.bench import UNDECIDED_PASSES
from execution import campaign
from measurement.refusals import UsageError
from measurement.text import make_command, shell_word
from plan import plan, suggestions, sweep, user_models
from publish import committed
from records import foreign, jsonfiles, manifest, runs

TARGETS = [*table.COMMANDS, "test", "lock", "lint", "clean", "help"]
TOUCH = "touch EXECUTED"
# What a shell or make would run, expand, split or take for an option.
PAYLOADS = [
    *(f"$({TOUCH})", f"`{TOUCH}`", f"'; {TOUCH}; '", f'"; {TOUCH}; "', f"'\"'; {TOUCH}; '", f"a; {TOUCH}"),
    *(f"a | {TOUCH}", f"a && {TOUCH}", f"a & {TOUCH}", "a > EXECUTED", f"<({TOUCH})", f"\\'; {TOUCH}; \\'"),
    *(f"$(shell {TOUCH})", f"${{shell {TOUCH}}}", f"$$(shell {TOUCH})", f"$$({TOUCH})", f"$(eval $(shell {TOUCH}))"),
    *("$(file >EXECUTED)", "$(error x)", "$(HOME)", "${HOME}", "$${HOME}", "$HOME", "$$", "$"),
    *("-x", "--force", f"--eval=$(shell {TOUCH})", "*", "?", "[a-z]*", "~", "{a,b}", "!!", "%", "a%b", "# a", "a#b"),
    *("\\", "a\\", "a b", "a  b ", "it's", 'qu"ote', "=a", "a=b", "a:b", "a,b", "a\tb", "a\rb", "a\x0bb"),
    *("a\u0085b", "a\u2028b", "a\u2029b", "a\u00a0b", "\u202etxt.exe", "\x1b[31mred\x1b]0;title\x07", "\u200b"),
    *("\udcff", "ü\x7f", "\U0001f600"),
]  # fmt: skip
LINES = [f"a\n{TOUCH}", f"'\n{TOUCH}\n'", "a\n", f"a\r\n{TOUCH}", f"a\\\n{TOUCH}"]


def words_of(commands: list[str], cwd: Path) -> list[list[str]]:
    """What bash makes of each command's words, `make` itself apart."""
    script = "\n".join(f"{re.sub('^make', 'show', command)}; printf '\\036\\0'" for command in commands)
    script = f"show() {{ printf '%s\\0' \"$@\"; }}\n{script}"
    done = subprocess.run(["bash", "-c", os.fsencode(script)], cwd=cwd, capture_output=True, check=True)
    parts = done.stdout.split(b"\x1e\0")[:-1]
    return [[os.fsdecode(word) for word in part.split(b"\0")[:-1]] for part in parts]


@pytest.fixture
def empty(tmp_path) -> Path:
    """A folder in which nothing may appear."""
    folder = tmp_path / "empty"
    folder.mkdir()
    return folder


def refusal(call, *given: object) -> str:
    with pytest.raises(UsageError) as refused:
        call(*given)
    return str(refused.value)


def composed(value: str, folder: Path) -> dict[str, tuple[str, list[str]]]:
    """Commands that the suite composes, with a value of a user's or of a foreign folder's in each; their words."""
    out = folder / value.replace("/", "|")
    out.mkdir(exist_ok=True)
    for name in ("plan.json", manifest.PAIR):
        (out / name).write_text("{}")
    place, run = f"RESUME={out}", runs.Run(out)
    given = {"framework": ["torch", value], "filter": value, "isolate": True, "weights": None}
    steps = bench.next_steps(run, frozenset())
    return {
        "published": (published.command("bench", given), [f"FRAMEWORK=torch,{value}", f"FILTER={value}", "ISOLATE=1"]),
        "pair's": (
            published.command("ab A=1 B=2", given),
            ["A=1", "B=2", f"FRAMEWORK=torch,{value}", f"FILTER={value}", "ISOLATE=1"],
        ),
        "foreign": (foreign.command("ab", out, {"A": value, "B": value}), [place, f"A={value}", f"B={value}"]),
        "next": (steps, [f"RUN={out}"]),
        "pair": (refusal(ab.refuse_a_pair, str(out)).partition("resume it: ")[2][:-1], [place]),
        "run": ("make bench " + refusal(runs.check_free, str(out)).partition("resume it: ")[2][:-1], [place]),
    }


def test_what_is_composed_can_be_pasted(tmp_path, empty):
    """Through a real shell, from one line, without anything that a terminal or a page would show as something else."""
    commands = [one for value in [*PAYLOADS, *LINES] for one in composed(value, tmp_path).values()]
    assert [words[1:] for words in words_of([command for command, _ in commands], empty)] == [w for _, w in commands]
    assert all(command.isprintable() and "  " not in command for command, _ in commands)
    assert list(empty.iterdir()) == []


def test_what_is_quoted_shows_every_sign():
    """Else a page would fold it, a terminal turn it into another, or a line end there."""
    assert shell_word("a b") == "'a b'" and shell_word("mlp") == "mlp" and shell_word("") == "''"
    assert shell_word("a\tb\n") == r"$'a\011b\012'"
    assert shell_word("a  b") == r"$'a\040\040b'"
    assert make_command("bench", {"OUT": "é x", "FORCE": "1"}) == "make bench OUT='é x' FORCE=1"


def test_the_published_commands_exist():
    """Check that each one's words are options of its command."""
    seen = set()
    for folder in published.folders(ROOT / "results"):
        entries = [entry for name in committed.RECORDS for entry in jsonfiles.lines(folder / name)]
        for target, asked in published.plans(folder):
            _, _, *words = shlex.split(published.command(target, asked["given"], entries))
            _, arguments = runner.parse([target, *words])
            for word in sweep.split_words(getattr(arguments, "mode", None) or ""):
                suggestions.check_mode(word, frameworks.NAMES)
            seen.add(target)
    assert seen == {"bench", "explain", "start", "stream"}
    rounds = [{"strategy": name, "round": number} for name in "ba" for number in (0, 1)]
    words = published.command("start", {"mode": "eager", "threads": 2}, rounds)
    assert words == "make start THREADS=2 STRATEGY=a,b PROCESSES=2"
    assert published.command("stream", {"shapes": "static", "calls": 200}) == "make stream CALLS=200"


def test_a_foreign_plan_s_flag_that_is_no_option_is_not_a_part_of_a_command(tmp_path, capsys):
    """`SHELL=` names the program that make runs; other names are code."""
    flags = {"framework": "alpha", "shell": "/x/sh", "SHELL": "/x/sh", f"a;{TOUCH};b": "1", "makeflags": "--eval=x"}
    flags |= {"runner": "/x", "python": "/x/python", "bootstrap-python": "/x", "filter": "a b"}
    assert published.command("bench", flags) == "make bench FRAMEWORK=alpha FILTER='a b'"
    folder = write_run(tmp_path / "run", small_set())
    (folder / "plan.json").write_text(json.dumps({"given": flags}))
    assert runner.main(["report", str(folder)]) == 0
    assert runner.main(["compare", str(write_run(tmp_path / "other", small_set())), str(folder)]) in (0, 1, 3)
    for name in ("summary.md", "report.md", "report.html", "comparison.md"):
        text = (folder / name).read_text()
        assert "SHELL" not in text and TOUCH not in text and "/x" not in text
    assert "make bench FRAMEWORK=alpha FILTER='a b'" in (folder / "summary.md").read_text()
    capsys.readouterr()


def test_a_parameter_of_a_user_s_own_model_is_a_part_of_the_command(tmp_path):
    model = tmp_path / "net.py"
    model.write_text("def inputs(batch_size=1, hidden_size=4): ...")
    given = {"workload": [str(model)], "hidden-size": "8", "other": "1"}
    assert published.command("bench", given) == "make bench WORKLOAD=net.py HIDDEN_SIZE=8"
    model.unlink()
    assert published.command("bench", given) == "make bench WORKLOAD=net.py"


WRITTEN = re.compile(rf"\bmake ({'|'.join(table.COMMANDS)})\b((?:[ \[]+[A-Z_]+=[^\s`|)\]]*\]?)*)")
PLACEHOLDER = re.compile(r"[<…]|path/|\.py\b|REQUIREMENTS|\.toml|WEIGHTS|RESUME|LAUNCHER|PADDLE_INDEX|WHEELHOUSE")


def written_in(page: Path) -> list[tuple[str, list[str]]]:
    """Return the commands of a page, with their variables."""
    found = WRITTEN.findall(re.sub(r"\\\n\s*", " ", page.read_text(encoding="utf-8")))
    return [(command, words.replace("[", " ").replace("]", " ").split()) for command, words in found]


PAGES = [
    *(
        ROOT / path
        for path in listed_files()
        if path.suffix == ".md" and (len(path.parts) == 1 or path.parts[0] == "docs")
    ),
    ROOT / "studies/README.md",
    ROOT / "docs/help.txt",
]


def test_every_command_in_the_documentation_takes_the_variables_given_to_it():
    written = [one for page in PAGES for one in written_in(page)]
    assert len(written) > 90
    refused = []
    for command, words in written:
        names = {word.partition("=")[0] for word in words} - {*command_line.OF_MAKE}
        taken = {option.name for option in runner.options_of(table.COMMANDS[command])}
        refused += [(command, name) for name in names - taken]
    assert refused == []


def test_the_sweeps_of_the_documentation_can_be_planned():
    written = [
        [command, *words]
        for page in PAGES
        for command, words in written_in(page)
        if command in ("bench", "ladder", "explain") and not PLACEHOLDER.search(" ".join(words))
    ]
    assert len(written) > 20
    for words in written:
        assert plan.plan(sweep.resolve(campaign.options_of(runner.parse(words)[1]))).cells, words


COMPOSED = re.compile(rf"(?:\bmake (?:{'|'.join(TARGETS)})\b[^.;:`]*|runner\.py \w+[^.;:`]*|\bRESUME=)\{{\}}")


def unquoted(source: str) -> list[str]:
    """Return what formatted texts hold of commands with a value in them, past the function that quotes."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            text = "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            found += COMPOSED.findall(text)
    return found


COMMANDS = (*ROOMS, "reports", "launchers", "worker", "frameworks", "workloads", "experiments", "runner.py")
# Words of the suite's own that need no quotes, in files that may import nothing of it.
WITHOUT = {
    "environments/offline.py": ["make setup {}"],
    "frameworks/__init__.py": ["make setup FRAMEWORK={} DEVICE={} MODE={}"],
}


def test_no_command_is_composed_but_by_the_function_that_quotes():
    files = [path for path in listed_files() if path.suffix == ".py" and path.parts[0] in COMMANDS]
    sources = ((path, (ROOT / path).read_text()) for path in files)
    found = {str(path): unquoted(text) for path, text in sources if "make " in text or "runner.py " in text}
    found = {path: words for path, words in found.items() if words}
    assert found == WITHOUT
    assert unquoted('f"go on: make bench RESUME={x}"') and unquoted('f"make setup {x}"')
    assert not unquoted('f"There is no run; `make bench` makes one in {x}"')


# What a recipe would start, instead of it: it writes down its arguments, and settings of the environments.
STUB = """#!/bin/bash
{ printf '%s\\0' "$@" "${WHEELHOUSE-}" "${PADDLE_INDEX-}" "${PADDLE_VERSION-}"; printf '\\036\\0'; } >> given
"""


needs_make = pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """The real Makefile, with a program in place of every Python."""
    folder = tmp_path_factory.mktemp("made") / "checkout"
    python = folder / ".venvs/runner/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(STUB)
    python.chmod(0o755)
    (folder / "Makefile").write_text((ROOT / "Makefile").read_text())
    for name in ("requirements.txt", "requirements-uv.txt", ".venvs/runner/.stamp"):
        (folder / name).touch()
    return folder


def make(checkout: Path, *words: str) -> tuple[subprocess.CompletedProcess, list[list[str]]]:
    """Run make; what it started, as words. Nothing else appears in the folder."""
    before = set(checkout.iterdir())
    command = ["make", "BOOTSTRAP_PYTHON=.venvs/runner/bin/python", *words]
    done = subprocess.run(list(map(os.fsencode, command)), cwd=checkout, capture_output=True)
    given = checkout / "given"
    parts = given.read_bytes().split(b"\x1e\0")[:-1] if given.exists() else []
    given.unlink(missing_ok=True)
    assert set(checkout.iterdir()) == before, words
    return done, [[os.fsdecode(word) for word in part.split(b"\0")[:-1]] for part in parts]


@needs_make
def test_make_calls_an_undecided_run_no_error(checkout):
    done, _ = make(checkout, "-n", "bench")
    assert f"{UNDECIDED_PASSES}=1" in done.stdout.decode()


SETTINGS = ["WHEELHOUSE", "PADDLE_INDEX", "PADDLE_VERSION"]
KNOWN = sorted({option.name for option in runner.every_option()})
# Those with variables, and some of each kind.
GOALS = [name for name in TARGETS if name not in ("help", "lint", "clean")]
SOME = ["setup", "bench", "report", "compare", "test", "lock"]


@needs_make
@pytest.mark.parametrize("payload", PAYLOADS, ids=ascii)
def test_make_runs_no_value_of_a_variable(checkout, payload):
    """Of all variables and commands in one process: each arrives as it is, in its own word."""
    goals = GOALS if "'" in payload else SOME
    given = [*KNOWN, *SETTINGS, "UPGRADE"]
    done, started = make(checkout, *goals, *(f"{name}={payload}" for name in given))
    assert done.returncode == 0, done.stderr
    arrives = payload.lstrip(" \t")  # make drops blanks after the =
    by_command = {words[1]: words[2:] for words in started if words[0] == "runner.py"}
    assert [*by_command] == [name for name in goals if name not in ("test", "lock")]
    expected = ["--skip-others", *sorted(f"{name}={arrives}" for name in (*KNOWN, "UPGRADE")), *[arrives] * 3]
    assert all([words[0], *sorted(words[1:-3]), *words[-3:]] == expected for words in by_command.values())


@pytest.mark.parametrize("command", table.COMMANDS)
def test_the_runner_takes_every_value_as_it_is(command, monkeypatch):
    """None is an option, a pattern or a list before the command reads it."""
    monkeypatch.setattr(user_models, "register_named_in", lambda words: None)  # a payload may name a library's model
    forms = table.COMMANDS[command].forms
    every = [option for option in runner.options_of(table.COMMANDS[command]) if option.flag not in forms]
    options = [option for option in every if option.parse is str and not option.switch]
    for payload in [*PAYLOADS, *LINES]:
        _, arguments = runner.parse([command, *(f"{option.name}={payload}" for option in options)])
        values = [vars(arguments)[option.attribute] for option in options]
        assert all(value in (payload, [payload]) for value in values), payload


def test_make_has_the_commands_of_the_table():
    listed = re.findall(r"(?m)^override COMMANDS := (.*)$", (ROOT / "Makefile").read_text())
    assert listed == [" ".join(table.COMMANDS)]


@needs_make
def test_make_refuses_a_line_break_in_one_sentence(checkout):
    """Also with -i, which goes on with the next line of a recipe."""
    names = [*KNOWN, *SETTINGS, "UPGRADE", "BOOTSTRAP_PYTHON", "UNKNOWN_ONE"]
    for name, payload in zip(names, itertools.cycle(LINES), strict=False):
        done, started = make(checkout, "-i", "bench", "lock", f"{name}={payload}")
        assert (done.returncode, started) == (2, []), name
        assert re.fullmatch(rf"Makefile:\d+: \*\*\* {name} holds a line break; .*\.  Stop\.\n", done.stderr.decode())
    for payload in LINES:
        done, started = make(checkout, "-i", "bench", payload)
        assert (done.returncode, started, done.stderr.count(b"\n")) == (2, [], 1)


@needs_make
def test_make_runs_no_name_of_a_target(checkout):
    """In one process; Python looks for the nearest of each."""
    targets = [payload for payload in PAYLOADS if "=" not in payload and payload != "~"]  # which is there
    done, started = make(checkout, "-k", "--", *targets)
    assert done.returncode == 2
    assert [words[0] for words in started] == ["-c"] * len(targets)
    library = re.compile(r"(.*?)\(.*\)")  # make takes `a(b)` for the member b of the library a
    assert {words[2] for words in started} == {library.sub(r"\1", target) for target in targets}


@needs_make
def test_make_runs_no_name_of_a_variable(checkout):
    """But for what make itself expands in a name before it reads a Makefile. The runner refuses each."""
    for payload in PAYLOADS:
        if not re.search(r"[\s=$]|^-|[?!]$", payload):  # parts of a definition, and options
            done, started = make(checkout, "bench", f"{payload}=1")
            is_target = done.returncode == 2 and started[-1][0] == "-c"
            value = "" if payload in "%*" else "1"  # of an automatic variable
            assert is_target or started == [["runner.py", "bench", f"{payload}={value}", "", "", ""]], payload


@needs_make
def test_make_expands_nothing_given_for_a_name_of_its_own(checkout):
    """Each is another variable of the command line, which the runner refuses."""
    own = re.findall(r"(?m)^override (?:define )?([A-Za-z_]+)(?: :?=|$)", (ROOT / "Makefile").read_text())
    assert {"GIVEN", "COMMANDS", "newline", "quoted", "python", "check_python"} <= {*own}
    for name in own:
        done, started = make(checkout, "bench", "lock", f"{name}=$(shell {TOUCH})`{TOUCH}`'; {TOUCH}; '")
        assert name in ("GIVEN", "newline") or any(word.startswith(f"{name}=") for word in started[0])
        assert done.returncode == (2 if name == "newline" else 0)


@needs_make
def test_no_variable_of_the_environment_changes_what_is_measured(checkout, monkeypatch):
    for name in KNOWN:
        monkeypatch.setenv(name, "x")
    for words in ([], ["-e"]):
        assert make(checkout, *words, "bench")[1] == [["runner.py", "bench", "", "", ""]]
