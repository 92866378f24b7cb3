"""Artefacts of starts: used only where they are whole and made for the same; else a reason and a rebuild."""

from __future__ import annotations

import json
import os
import shutil
import socket
from types import SimpleNamespace

import pytest

from execution import artefacts, starts
from measurement.cells import Cell
from measurement.protocol import Failed
from plan.plan import Group

FACTS = {
    "run": "a",
    "cell": "torch/mlp",
    "strategy": "ahead-of-time",
    "model": "",
    "weights": "seed:0",
    "machine": "m",
    "versions": {"torch": "2.13.0"},
}


@pytest.fixture
def artefact(tmp_path):
    folder = tmp_path / "artefact"
    (folder / "inner").mkdir(parents=True)
    (folder / "model.pt2").write_bytes(b"x" * 100)
    (folder / "inner" / "kernel.so").write_bytes(b"y" * 50)
    artefacts.seal(folder, FACTS, 1.5)
    return folder


def test_a_whole_artefact_fits(artefact):
    assert artefacts.problem(artefact, FACTS) is None
    assert (artefacts.seconds(artefact), artefacts.size(artefact)) == (1.5, 150)


def truncate(folder):
    os.truncate(folder / "model.pt2", 60)


def change(folder):
    (folder / "inner" / "kernel.so").write_bytes(b"z" * 50)


def link(folder):
    (folder / "model.pt2").rename(folder.parent / "elsewhere")
    (folder / "model.pt2").symlink_to(folder.parent / "elsewhere")


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (truncate, "model.pt2 is truncated or was changed"),
        (change, "inner/kernel.so is truncated or was changed"),
        (link, "it holds a link"),
        (lambda folder: (folder / "model.pt2").unlink(), "model.pt2 is missing"),
        (lambda folder: (folder / "more.so").write_bytes(b""), "more.so is unexpected"),
        (lambda folder: (folder / "manifest.json").unlink(), "its manifest is missing or incomplete"),
        (lambda folder: os.truncate(folder / "manifest.json", 20), "its manifest is missing or incomplete"),
        (shutil.rmtree, ""),
    ],
)
def test_a_damaged_artefact_is_named(artefact, damage, reason):
    damage(artefact)
    assert artefacts.problem(artefact, FACTS) == reason


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"versions": {"torch": "2.14.0"}}, "it was made with other versions (torch 2.13.0, now 2.14.0)"),
        ({"cell": "torch/bert"}, "it was made for another model, shape or device"),
        ({"run": "b"}, "it was made for another run"),
        ({"weights": "seed:1"}, "it was made for other weights"),
        ({"machine": "n"}, "it was made for another machine"),
    ],
)
def test_a_foreign_or_older_artefact_is_named(artefact, changed, reason):
    assert artefacts.problem(artefact, FACTS | changed) == reason


@pytest.mark.parametrize("content", [[1], {"facts": [1]}, {"files": ["model.pt2"]}, {"facts": None}])
def test_a_manifest_that_holds_no_objects_is_none(artefact, content):
    whole = json.loads((artefact / "manifest.json").read_text())
    (artefact / "manifest.json").write_text(json.dumps(whole | content if isinstance(content, dict) else content))
    assert artefacts.problem(artefact, FACTS) == "its manifest is missing or incomplete"


def test_a_copied_cache_has_no_sockets_pipes_and_links(artefact, tmp_path):
    """A user model may leave them among its temporary files, as a server of shared objects does."""
    os.mkfifo(artefact / "inner" / "pipe")
    (artefact / "link").symlink_to("/nowhere")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(artefact / "socket"))
        artefacts.copy(artefact, tmp_path / "copy")
    there = (tmp_path / "copy").rglob("*")
    assert {str(path.relative_to(tmp_path / "copy")) for path in there} == {"model.pt2", "inner", "inner/kernel.so"}


@pytest.mark.parametrize(
    "name", ["g++", "x86_64-linux-gnu-g++-12", "gcc", "cc", "c++", "clang++-17", "nvcc", "ld.gold"]
)
def test_compilers_leave_the_path_and_other_programs_stay(tmp_path, name):
    tools = tmp_path / "tools"
    tools.mkdir()
    for program in (name, "openssl", "lscpu", "gccmakedep"):
        (tools / program).write_text("")
    environment = starts.without_compilers({"PATH": str(tools), "CXX": "g++", "HOME": "/h"}, tmp_path / "path")
    assert environment == {"PATH": str(tmp_path / "path"), "HOME": "/h"}
    assert sorted(path.name for path in (tmp_path / "path").iterdir()) == ["gccmakedep", "lscpu", "openssl"]


@pytest.mark.parametrize(("status", "tries"), [("unsupported", 1), ("oom", 2), ("crash", 2)])
def test_only_a_refusal_of_an_artefact_is_final(tmp_path, monkeypatch, status, tries):
    cell, tried = Cell("torch", "mlp", "plain", "inference", "cpu", "fp32", 1, (), "eager"), []
    group = Group((cell,), frozenset())
    known = {cell.group_id: (SimpleNamespace(settings={}), None)}
    made = starts.Starts(launcher=None, strategies=(), processes=2, say=print, known=known)
    monkeypatch.setattr(made, "facts", lambda *_: FACTS)
    monkeypatch.setattr(made, "caches", lambda: tmp_path / "cache")
    monkeypatch.setattr(made, "process", lambda *asked: (tried.append(asked) or Failed("", status, "why"), None))
    for _ in range(2):
        found = made.ensure(group, "ahead-of-time", tmp_path / "artefact")
        assert found == {"status": status, "reason": "why"}
    assert len(tried) == tries
