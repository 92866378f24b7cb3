"""Folders of somebody else: nothing in them is executed, installed or followed, and nothing outside is written."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from doubles.suite import TINY

import runner
from environments import locks
from measurement import durable
from measurement.refusals import UsageError
from records import foreign, manifest, runs

pytestmark = pytest.mark.slow

MODEL = """
import pathlib
import numpy
pathlib.Path({mark!r}).write_text("ran")
def model(): raise SystemExit
def inputs(batch_size=1): return numpy.zeros(batch_size)
"""
SMALL = {
    "framework": "fake",
    "mode": "eager",
    "workload": "mlp",
    "width": "8",
    "depth": "1",
    "threads": "1",
    "budget": "0.1",
}
PLANNED = {"framework": "numpy", "workload": "mlp"}


@pytest.fixture
def mark(tmp_path) -> Path:
    """A file that appears if something of the foreign folder is executed."""
    return tmp_path / "EXECUTED"


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "theirs").mkdir()
    return tmp_path / "theirs"


@pytest.fixture
def model(folder, mark) -> str:
    (folder / "evil.py").write_text(MODEL.format(mark=str(mark)))
    return str(folder / "evil.py")


@pytest.fixture
def program(folder, mark) -> str:
    path = folder / "evil python"
    path.write_text(f"#!/bin/sh\ntouch '{mark}'\nexec {sys.executable} \"$@\"\n")
    path.chmod(0o755)
    return str(path)


def call(suite, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess:
    command = [sys.executable, str(suite.folder / "runner.py"), *words]
    return subprocess.run(command, cwd=cwd or suite.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def advised(output: str) -> list[str]:
    """The command to type in a refusal, as flags of the runner."""
    target, *words = shlex.split(output.partition("if you trust them: make ")[2].strip())
    pairs = (word.partition("=") for word in words)
    return [target, *(part for name, _, value in pairs for part in (f"--{name.lower()}", value))]


def plan(folder: Path, **content) -> None:
    """Write a plan as the suite does, its digest with it."""
    manifest.write(folder / "plan.json", content)


def refused(capsys, *words: str) -> str:
    """The sentence with which the command is refused; `bench` may have printed how many cells it plans."""
    code = runner.main(list(words))
    output = re.sub(r"^\d+ cells?, about .*\n", "", "".join(capsys.readouterr()))
    assert code == 2 and output.startswith("runner.py: ") and output.count("\n") == 1, output
    return output


@pytest.mark.parametrize("words", ["list", "text", "beside a workload of the suite"])
def test_a_model_that_a_folder_names_is_not_run(capsys, folder, model, mark, words):
    workload = {"list": [model], "text": model, "beside a workload of the suite": f"mlp,{model}"}[words]
    (folder / "plan.json").write_text(json.dumps({"given": {"framework": "numpy", "workload": workload}}))
    output = refused(capsys, "bench", "--resume", str(folder))
    assert "names programs to run (WORKLOAD)" in output
    assert not mark.exists()
    assert advised(output)[:3] == ["bench", "--resume", str(folder)] and model in advised(output)[4]
    refused(capsys, "bench", "--resume", str(folder), "--workload", "mlp")
    refused(capsys, "bench", "--resume", str(folder), "--dry-run")
    assert not mark.exists()
    assert {path.name for path in folder.iterdir()} == {"evil.py", "plan.json", "processes"}


def test_an_interpreter_that_a_folder_names_is_run_only_where_it_is_named_again(suite, capsys, folder, program, mark):
    plan(folder, given=SMALL, python=program)
    output = refused(capsys, "bench", "--resume", str(folder))
    assert "(PYTHON)" in output and not mark.exists()
    done = call(suite, *advised(output))
    assert f"Run {folder}" in done.stdout and mark.exists(), done.stdout


def test_an_interpreter_of_an_older_folder_is_not_run(capsys, folder, program, mark):
    (folder / "plan.json").write_text(json.dumps({"given": PLANNED}))
    (folder / "machine.json").write_text(json.dumps({"python": program}))
    assert "(PYTHON)" in refused(capsys, "bench", "--resume", str(folder))
    assert not mark.exists()


def test_a_reproduction_s_interpreter_is_not_run(capsys, folder, program, mark):
    content = {"table": "paddle-bert", "device": "cpu", "flags": {}, "python": program}
    manifest.write(folder / manifest.REPRODUCTION, content)
    output = refused(capsys, "reproduce", "--resume", str(folder))
    assert advised(output) == ["reproduce", "--resume", str(folder), "--python", program]
    assert not mark.exists()


def test_a_pair_s_models_interpreters_and_versions_are_not_run(capsys, folder, model, program, mark):
    for sides, workload in (([None, None], [model]), ([program, None], "mlp"), (["evspoc==1.0", program], "mlp")):
        manifest.write(folder / manifest.PAIR, {"sides": sides, "given": {**PLANNED, "workload": workload}})
        output = refused(capsys, "ab", "--resume", str(folder))
        assert not mark.exists()
        named = {name for name, side in zip(("--a", "--b"), sides, strict=True) if side}
        named |= {"--workload"} if workload == [model] else set()
        assert set(advised(output)[3::2]) == named
        assert not list((ROOT / ".venvs").glob("*evspoc*"))


def test_a_side_of_a_pair_names_no_program_of_its_own(capsys, folder, model, mark):
    """The pair's own file is harmless, and its side's plan is not."""
    manifest.write(folder / manifest.PAIR, {"sides": ["/bin/true", None], "given": {"framework": "numpy"}})
    side = folder / "theirs-a"
    side.mkdir()
    plan(side, given={"framework": "numpy", "workload": [model]}, python="/bin/true")
    output = refused(capsys, "ab", "--resume", str(folder), "--a", "/bin/true")
    assert "names programs to run" in output and not mark.exists()


def test_a_run_in_this_checkout_s_results_needs_no_program_named_again(suite, program, mark):
    own = suite.folder / "results/runs/mine"
    own.mkdir(parents=True)
    try:
        plan(own, given=SMALL, python=program)
        done = call(suite, "bench", "--resume", "mine")
        assert f"Run {own}" in done.stdout and mark.exists(), done.stdout
    finally:
        shutil.rmtree(own)


def test_a_link_in_results_does_not_make_a_folder_this_checkout_s(suite, folder, program, mark):
    link = suite.folder / "results/runs/link"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(folder)
    try:
        plan(folder, given=PLANNED, python=program)
        assert "(PYTHON)" in call(suite, "bench", "--resume", "link").stdout
        assert not mark.exists()
    finally:
        link.unlink()


def links() -> dict:
    """By name how a folder is prepared, with what lies outside of it."""

    def at(name: str, target: str):
        def make(folder: Path, outside: Path) -> None:
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).symlink_to(outside / target)

        return make

    files = ["processes/lock", "processes/reports.jsonl", "records.jsonl", "samples.jsonl", "versions.json"]
    return {name: at(name, "victim") for name in files} | {
        "processes": at("processes", "."),
        "processes/cache-0": at("processes/cache-0", "cache-0"),
        "a name that is not there yet": at("records.jsonl", "new"),
    }


# OUT= that holds records is refused as a run.
CASES = [(name, begins) for begins in (False, True) for name in links() if not begins or name != "records.jsonl"]


@pytest.mark.parametrize(("name", "begins"), CASES)
def test_links_out_of_a_folder_are_refused_before_anything_is_written(capsys, folder, tmp_path, name, begins):
    outside = tmp_path / "outside"
    (outside / "cache-0").mkdir(parents=True)
    (outside / "cache-0" / "file").write_text("precious")
    (outside / "victim").write_text("precious")
    links()[name](folder, outside)
    if not begins:
        plan(folder, given=PLANNED)
    before = {path: path.is_file() and path.read_text() for path in sorted(outside.rglob("*"))}
    words = ("--out", str(folder), *TINY, "--framework", "numpy") if begins else ("--resume", str(folder))
    output = refused(capsys, "bench", *words)
    assert "is a link to" in output and "remove the link" in output
    assert {path: path.is_file() and path.read_text() for path in sorted(outside.rglob("*"))} == before
    assert not list(folder.rglob("lock")) or name == "processes/lock"


@pytest.mark.parametrize("name", ["pair-a", "part"])
def test_a_pair_and_a_reproduction_write_into_no_linked_folder(suite, folder, tmp_path, name):
    outside = tmp_path / "outside"
    outside.mkdir()
    plan(outside, given=PLANNED)
    (folder / name).symlink_to(outside)
    before = sorted(outside.rglob("*"))
    with pytest.raises(UsageError, match="is a link to"), runs.Run(folder).held():
        pass
    assert sorted(outside.rglob("*")) == before


def test_a_lock_is_no_link_and_no_second_name_of_another_file(tmp_path):
    victim, lock = tmp_path / "victim", tmp_path / "lock"
    victim.write_text("precious")
    lock.symlink_to(victim)
    with pytest.raises(OSError), locks.alone(lock):
        pass
    lock.unlink()
    lock.hardlink_to(victim)
    with locks.alone(lock):
        assert victim.read_text() == "precious"
    assert victim.read_text() == "precious"


def test_nothing_is_written_through_a_link(tmp_path):
    from records import jsonfiles

    victim, link = tmp_path / "victim", tmp_path / "records.jsonl"
    victim.write_text("precious\n")
    link.symlink_to(victim)
    with pytest.raises(OSError):
        jsonfiles.append(link, {"cell": "x"})
    durable.replace(link, b"ours")
    assert victim.read_text() == "precious\n" and not link.is_symlink()


def test_what_is_resumed_is_printed_with_what_it_needs(tmp_path):
    named = foreign.programs(tmp_path, {"workload": ["mlp", "/a b/net.py"]}, PYTHON="/x/python")
    assert shlex.split(foreign.command("bench", tmp_path, named)) == [
        *("make", "bench", f"RESUME={tmp_path}", "WORKLOAD=mlp,/a b/net.py", "PYTHON=/x/python"),
    ]  # fmt: skip
    assert foreign.programs(foreign.RUNS / "x", {"workload": "/a/net.py"}, PYTHON="/x/python") == {}
    assert foreign.command("bench", foreign.RUNS / "x", {}) == "make bench RESUME=x"
