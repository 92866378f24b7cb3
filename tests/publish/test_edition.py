"""Publishing an edition: what is missing, what refuses it, and the page of a place."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

import pytest
from doubles.suite import copy_with_fake

from environments import environments
from measurement import machine
from measurement.refusals import REFUSED
from plan import hosts, plan, sweep
from publish import edition

TINY = """
framework = "fake"
workload = "mlp"
width = 8
depth = 1
batch = {batch}
threads = 1
budget = 0.1

[about]
title = "A tiny MLP"
"""


def many_processors(monkeypatch) -> None:
    """Plan for a machine with as many processors as any table asks for."""
    for module in (machine, hosts):
        monkeypatch.setattr(module, "usable_cpus", lambda: 64, raising=False)


def test_every_table_of_the_edition_can_be_planned(monkeypatch):
    many_processors(monkeypatch)
    names = set()
    for part in edition.read_sweeps():
        planned = plan.plan(sweep.resolve(part.flags))
        assert planned.cells and part.about["title"], part.name
        assert part.device in environments.DEVICES and (part.device == "gpu") == (planned.cells[0].device_kind == "gpu")
        assert not names & {cell.id for cell in planned.cells}, f"{part.name} repeats a cell of another table"
        names |= {cell.id for cell in planned.cells}


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """The suite with the fake framework and an edition of one table, committed."""
    copy = copy_with_fake(tmp_path_factory.mktemp("suite"))
    for path in (copy.folder / "experiments/edition").iterdir():
        path.unlink()
    (copy.folder / "experiments/edition/cpu-tiny.toml").write_text(TINY.format(batch=1))
    (copy.folder / ".gitignore").write_text("__pycache__\n.cache\n.venvs\nlaunches/\n")
    commit(copy.folder)
    return copy


def commit(folder: Path) -> None:
    """Commit all files of a folder, which becomes a repository."""
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "Measure"]):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)


def publish(suite, *words: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "runner.py", "publish", "--python", sys.executable, "--force", *words]
    return subprocess.run(command, cwd=suite.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.slow
def test_an_edition_is_measured_once_and_from_one_state_of_the_suite(suite):
    code = suite.folder / "plan/aliases.py"
    text = code.read_text()
    code.write_text(text + "\n# changed\n")
    refused = publish(suite)
    assert refused.returncode == REFUSED and "commit first" in refused.stdout
    code.write_text(text)

    stopped = publish(suite, "--minutes", "0.02")
    again = stopped.stdout.partition("Resume with: ")[2]
    assert stopped.returncode == 130, stopped.stdout
    assert again.startswith(f"make publish EDITION={edition.EDITION} DEVICE=cpu MINUTES=0.02"), stopped.stdout
    done = publish(suite)
    assert done.returncode == 0, done.stdout
    place = suite.folder / "results" / edition.EDITION / "cpu"
    page = (place / "README.md").read_text()
    assert "## A tiny MLP" in page and "fake graph" in page and "×" in page

    before = (place / "cpu-tiny/records.jsonl").read_bytes()
    commit(suite.folder)  # results alone: the code is the same
    again = publish(suite)
    assert again.returncode == 0 and "A tiny MLP" in again.stdout
    assert (place / "cpu-tiny/records.jsonl").read_bytes() == before

    (suite.folder / "experiments/edition/cpu-more.toml").write_text(TINY.format(batch=2))
    code.write_text(text + "\n# changed\n")
    commit(suite.folder)
    other = publish(suite)
    assert other.returncode == REFUSED and "2 files of the code changed since" in other.stdout, other.stdout


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--device", "gpu"], "PLACE=h100"),
        (["--place", "../cpu"], "PLACE must be the name of a folder"),
        (["--edition", "runs"], "EDITION must be the name of a folder"),
        (["--table", "cpu-langauge"], "did you mean 'cpu-language'"),
    ],
)
def test_a_wrong_use_is_one_sentence(words, sentence, capsys):
    import runner

    assert runner.main(["publish", *words]) == REFUSED
    assert sentence in capsys.readouterr().err


def test_other_versions_are_refused(monkeypatch, tmp_path, record):
    place = tmp_path / "cpu"
    found = [record(framework="torch", framework_version="2.13.0"), record(framework="jax", framework_version="0.11.2")]
    monkeypatch.setattr(edition, "read_records", lambda folder: iter(found))
    monkeypatch.setattr(edition.environments, "ensure", lambda *words, **named: Path(sys.executable))
    monkeypatch.setattr(edition, "installed", lambda interpreter, name: "2.11.0")
    table = next(part for part in edition.read_sweeps() if part.name == "gpu-models")
    many_processors(monkeypatch)
    arguments = argparse.Namespace(device="gpu", python=None)
    with pytest.raises(edition.UsageError, match=r"torch 2\.13\.0, and 2\.11\.0 is installed"):
        edition.check_versions(place, [edition.Table(table, place)], arguments)
