"""Run folders of somebody else, resumed or read: nothing in them is executed, installed or followed.

Whatever a folder names or links to: one sentence or an answer, a documented exit code, and all beyond the folder stays
as it was. A program that ran would leave a mark, and an index that was asked would have a caller.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from records import manifest
from studies.faults.commands import TOLD, words_of
from studies.faults.tampering import finished_run, with_own_cache
from studies.faults.trial import REFUSED, Trial

GIVEN = {"framework": "fake", "mode": "eager", "workload": "mlp", "width": "8", "depth": "1", "threads": "1"}
GIVEN |= {"budget": "0.1"}
MODEL = """
import pathlib
import numpy
pathlib.Path({mark!r}).write_text("ran")
def model(): raise SystemExit
def inputs(batch_size=1): return numpy.zeros(batch_size)
"""
PROGRAM = "#!/bin/sh\ntouch '{mark}'\nexec {python} \"$@\"\n"
PICKLE = b"cbuiltins\nexec\n(S'open(%r, \"w\").close()'\ntR."


@contextmanager
def guarded(trial: Trial) -> Iterator[tuple[Path, dict[str, str]]]:
    """Give the mark that nothing may leave, and variables that name a package index that nobody may call."""
    outside, mark = trial.folder / "outside", trial.folder / "EXECUTED"
    (outside / "cache-0").mkdir(parents=True)
    for name in ("victim", "cache-0/file"):
        (outside / name).write_text("precious")
    places = (outside, trial.suite.folder / ".venvs")
    before = [contents(place) for place in places]
    with socket.create_server(("127.0.0.1", 0)) as index:
        address = f"http://127.0.0.1:{index.getsockname()[1]}"
        names = ("UV_DEFAULT_INDEX", "UV_INDEX", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL")
        yield mark, dict.fromkeys(names, address)
        if select.select([index], [], [], 0)[0]:
            trial.saw("installed", "a package index was asked")
    if mark.exists():
        trial.saw("executed", "something that the folder names")
    for place, content in zip(places, before, strict=True):
        if contents(place) != content:
            trial.saw("changed outside", str(sorted(set(contents(place).items()) ^ set(content.items()))))


def contents(folder: Path) -> dict[str, bytes]:
    """Return what lies in a folder; one without files has an entry too."""
    places = sorted(folder.rglob("*")) if folder.is_dir() and not folder.is_symlink() else []
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in places}


def resumed(trial: Trial, command: str, codes: frozenset[int], environment: dict[str, str], dry: bool = False) -> None:
    words = [str(trial.out), *(["--dry-run"] if dry else [])]
    trial.run("--resume", *words, command=command, codes=codes, environment=environment)


def theirs(trial: Trial, mark: Path) -> tuple[str, str, str]:
    """Put a model, an interpreter and a checkpoint into the folder that leave the mark; their paths."""
    trial.out.mkdir(exist_ok=True)
    model, program, weights = (trial.out / name for name in ("evil.py", "evil python", "weights.bin"))
    model.write_text(MODEL.format(mark=str(mark)))
    program.write_text(PROGRAM.format(mark=mark, python=sys.executable))
    program.chmod(0o755)
    weights.write_bytes(PICKLE % str(mark))
    return str(model), str(program), str(weights)


def plans(model: str, program: str, weights: str) -> dict[str, dict]:
    """Plans by name: each names something to be executed."""
    return {
        "model": {"given": GIVEN | {"framework": "numpy", "workload": [model]}},
        "model as text": {"given": GIVEN | {"framework": "numpy", "workload": model}},
        "model beside mlp": {"given": GIVEN | {"framework": "numpy", "workload": f"mlp,{model}"}},
        "model and digest": {"given": GIVEN | {"workload": [model]}, "own": {"evil.py": {"source": model}}},
        "model twice": {"given": GIVEN | {"workload": [model, model, "mlp"]}, "own": {}},
        "model by name": {"given": GIVEN | {"framework": "numpy", "workload": Path(model).name}},
        "interpreter": {"given": GIVEN, "python": program},
        "both": {"given": GIVEN | {"workload": model}, "python": program},
        "checkpoint": {"given": GIVEN | {"framework": "numpy", "weights": weights}},
        "library model": {"given": GIVEN | {"workload": f"transformers:{Path(model).parent}"}},
        "unknown flags": {
            "given": GIVEN | {"requirements": weights, "container": program, "scratch": "/", "sweep": "x"}
        },
        "command": {"given": GIVEN, "command": [program], "number": 10**18, "started_at": {"a": 1}},
        "shell": {"given": GIVEN | {"batch": "$(touch EXECUTED)", "mode": "`touch EXECUTED`"}},
        "own is odd": {"given": GIVEN, "own": {"mlp": 3, "x": {"source": program, "digest": []}}},
        "cells elsewhere": {"given": GIVEN, "cells": ["../../outside/victim", "fake/../eager"]},
    }


PLANS = tuple(plans("", "", ""))


def hostile_plan(trial: Trial, what: str) -> None:
    """A plan that names something: refused, or measured with what is this checkout's own."""
    how, command = what.rsplit(" ", 1)
    with guarded(trial) as (mark, variables):
        plan = plans(*theirs(trial, mark))[how]
        if trial.rng.random() < 0.5:
            manifest.write(trial.out / manifest.PLAN, plan)  # with its digest
        else:
            (trial.out / manifest.PLAN).write_text(json.dumps(plan))
        trial.longest_path = 4 * len(str(trial.out))
        if command == "older":  # the interpreter stands in another file
            (trial.out / "machine.json").write_text(json.dumps({"python": str(trial.out / "evil python")}))
        if command == "dry":
            resumed(trial, "bench", TOLD, variables, dry=True)
        elif command in ("older", "bench"):
            resumed(trial, "bench", TOLD, variables)
        else:
            trial.run(*words_of(trial, command, trial.out), command=command, codes=TOLD, environment=variables)


SIDES: dict[str, Callable[[str], list]] = {
    "interpreter": lambda program: [program, None],
    "package": lambda program: ["evspoc==1.0", None],
    "both": lambda program: ["evspoc==1.0", program],
    "file": lambda program: [f"torch @ file://{program}", None],
    "repository": lambda program: ["git+file:///x", None],
    "options": lambda program: ["--default-index http://127.0.0.1:1 x==1", None],
    "three": lambda program: [program, program, program],
    "numbers": lambda program: [1, {"a": program}],
    "none": lambda program: [],
    "long": lambda program: ["x" * 100_000 + "==1", None],
}


def hostile_pair(trial: Trial, what: str) -> None:
    """A pair whose sides name something, or whose side's own plan does."""
    with guarded(trial) as (mark, variables):
        model, program, _ = theirs(trial, mark)
        content = {"sides": SIDES[what](program) if what in SIDES else [sys.executable, None], "given": GIVEN}
        if what == "model":
            content = {"sides": [None, None], "given": GIVEN | {"workload": [model]}}
        manifest.write(trial.out / manifest.PAIR, content)
        again = []
        if what == "side's plan":
            (trial.out / "run-a").mkdir()
            manifest.write(
                trial.out / "run-a" / manifest.PLAN, {"given": GIVEN | {"workload": [model]}, "python": program}
            )
            again = ["--a", sys.executable]
        trial.longest_path = 120_000 if what == "long" else 4 * len(str(trial.out))
        words = ("--resume", str(trial.out), *again)
        trial.run(*words, command="ab", codes=REFUSED, environment=variables)


REPRODUCTIONS = {
    "interpreter": {"table": "paddle-bert", "device": "cpu", "flags": {}},
    "table elsewhere": {"table": "../../outside", "device": "cpu", "flags": {}, "python": None},
    "table is a path": {"table": "/etc", "device": "cpu", "flags": {}, "python": None},
    "table is a list": {"table": ["paddle-bert"], "device": "cpu", "flags": {}, "python": None},
    "flags": {"table": "paddle-bert", "device": "cpu", "flags": {"python": "/bin/true"}, "python": "/bin/true"},
}


def hostile_reproduction(trial: Trial, what: str) -> None:
    """A reproduction that names an interpreter, or a table that is none."""
    with guarded(trial) as (mark, variables):
        program = theirs(trial, mark)[1]
        manifest.write(trial.out / manifest.REPRODUCTION, {"python": program} | REPRODUCTIONS[what])
        trial.longest_path = 4 * len(str(trial.out))
        resumed(trial, "reproduce", REFUSED, variables)


LINKED = ("records.jsonl", "results.csv", "samples.jsonl", "samples.jsonl.gz", "versions.json", "machine.json",
          "peaks.json", "references.json", "plan.json", "explained.jsonl", "report.html", "report.md", "summary.md",
          "comparison.md", "launches", "launches/lock", "launches/reports.jsonl", "launches/0001",
          "launches/cache-0")  # fmt: skip
READERS = ("report", "compare", "history", "gather", "watch")


def linked(trial: Trial, what: str) -> None:
    """Something of the folder is a link, or a second name, of what lies outside, or an endless device."""
    name, how, command = what.rsplit(" ", 2)
    with guarded(trial) as (_, variables):
        finished_run(trial)
        path = trial.out / name
        if path.is_dir():
            shutil.rmtree(path)
        content = path.read_bytes() if path.exists() else b"precious"
        path.unlink(missing_ok=True)
        path.parent.mkdir(exist_ok=True)
        outside = trial.folder / "outside"
        victim = outside / ("victim" if "." in path.name or path.name == "lock" else ".")
        before = trial.folder / "elsewhere"
        before.mkdir()
        (before / "victim").write_bytes(content)  # what a reader may read
        if how == "link":
            path.symlink_to(victim if trial.rng.random() < 0.5 or victim.is_dir() else before / "victim")
        elif how == "hardlink":
            os.link(before / "victim", path)
        elif how == "device":
            path.symlink_to("/dev/zero")
        elif how == "dangling":
            path.symlink_to(outside / "new")
        elif how == "loop":
            path.symlink_to(path.name)
        trial.longest_path = 4 * len(str(trial.out))
        if command == "bench":
            words = ("--python", trial.python, "--timeout", f"{trial.silence:g}")
            trial.run("--resume", str(trial.out), *words, codes=TOLD, environment=variables)
        else:
            whole = trial.folder / "whole"
            shutil.copytree(trial.suite.folder / "template", whole)
            trial.run(*words_of(trial, command, trial.out, whole), command=command, codes=TOLD, environment=variables)
        if (before / "victim").read_bytes() != content:
            trial.saw("changed outside", f"through {name}")


LOCKS = ("names a process", "rubbish", "empty", "a folder", "a pipe", "long", "read-only")


def locked(trial: Trial, how: str) -> None:
    """A lock that nobody holds, with a stranger's word in it: the run goes on or is refused; the process lives."""
    planned = finished_run(trial)
    with guarded(trial) as (_, variables):
        lock = trial.out / "launches/lock"
        lock.parent.mkdir(exist_ok=True)
        innocent = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        word = json.dumps({"process": innocent.pid, "host": socket.gethostname(), "since": "\x1b[2J"})
        texts = {
            "names a process": word,
            "rubbish": "\0\xff[",
            "empty": "",
            "long": "x" * 10_000_000,
            "read-only": word,
        }
        if how in texts:
            lock.write_text(texts[how])
            lock.chmod(0o444 if how == "read-only" else 0o644)
        elif how == "a folder":
            lock.mkdir()
        else:
            os.mkfifo(lock)
        words = ("--python", trial.python, "--timeout", f"{trial.silence:g}")
        ended = trial.run("--resume", str(trial.out), *words, codes=TOLD, environment=variables)
        if innocent.poll() is not None:
            trial.saw("killed", "a process that the folder names")
        innocent.kill()
        innocent.wait()
        if ended.code in REFUSED and how in texts:
            trial.saw("refused", ended.output)
        elif ended.code not in REFUSED:
            trial.complete(planned, {})


CODE = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)  # of Markdown: nothing in it is markup
TEXTS = (
    *("$(touch PASTED)", "`touch PASTED`", "'; touch PASTED; '", "<script>x</script>", "\x1b]0;x\x07", "=1+1|x"),
    *("@you ![](x)", "a`<script>x</script>`b ![](x)", "``<script>x</script>` ![](x)"),
)


def marked_up(trial: Trial, what: str) -> None:
    """Texts of records and plan that a page, a table or a terminal would obey: shown as texts."""
    command, _, number = what.partition(" ")
    text = TEXTS[int(number)]
    if command == "site":
        with_own_cache(trial)
    finished_run(trial)
    with guarded(trial) as (_, variables):
        lines = [json.loads(line) for line in trial.lines()]
        fields = ("device_name", "git_revision", "framework_version", "reason", "node")
        records = [line | dict.fromkeys(fields, text) for line in lines]
        (trial.out / "records.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
        (trial.out / "results.csv").unlink()
        plan = json.loads((trial.out / manifest.PLAN).read_text())
        manifest.write(trial.out / manifest.PLAN, {**plan, "given": plan["given"] | {"batch": text, text: text}})
        whole = trial.folder / "whole"
        shutil.copytree(trial.suite.folder / "template", whole)
        if command == "site":
            shutil.copytree(trial.out, trial.suite.folder / "results" / "first")
        runs = (trial.out,) if command == "report" else (trial.out, whole)
        ended = trial.run(*words_of(trial, command, *runs), command=command, codes=TOLD, environment=variables)
        if "\x1b]0;" in ended.output:
            trial.saw("escape sequence", "on the terminal")
        written = [path for path in trial.folder.rglob("*") if path.suffix in (".html", ".md") and obeyed(path, trial)]
        for path in written:
            trial.saw("markup", f"{text!r} in {path.name}")


def obeyed(path: Path, trial: Trial) -> bool:
    """Return whether a page or a text that was written holds one of the texts as markup."""
    if path.is_relative_to(trial.folder / "suite") or path.is_relative_to(trial.folder / "whole"):
        return False
    content = path.read_text(errors="replace")
    if path.suffix == ".md":
        content = CODE.sub("", content)
    return "<script>x" in content or "\x1b]0;" in content or (path.suffix == ".md" and "![](x)" in content)


HOWS = ("link", "hardlink", "device", "dangling", "loop")
FAULTS = {
    "foreign plans": {
        f"{name} {command}": hostile_plan for name in PLANS for command in ("bench", "dry", "report", "watch")
    }
    | {"interpreter older": hostile_plan, "checkpoint older": hostile_plan},
    "foreign pairs": dict.fromkeys((*SIDES, "model", "side's plan"), hostile_pair),
    "foreign reproductions": dict.fromkeys(REPRODUCTIONS, hostile_reproduction),
    "foreign links": {f"{name} {HOWS[n % 5]} {command}": linked
                      for m, name in enumerate(LINKED) for n, command in enumerate(("bench", *READERS), m)},
    "foreign locks": dict.fromkeys(LOCKS, locked),
    "foreign texts": {f"{command} {number}": marked_up for command in ("report", "compare", "history", "gather", "site")
                      for number in range(len(TEXTS))},
}  # fmt: skip
