"""`make list`: what there is and what runs here, asked of each environment once."""

from __future__ import annotations

import os
import re

import pytest

import runner
import workloads
from commands import inventory
from environments import environments
from plan import sweep

ANSWER = {"versions": {"torch": "9.9"}, "obstacle": None, "modes": {"inductor": "no compiler here"}}


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """The frameworks that were asked, in turn; answers are kept in a folder of the test's own."""
    calls = []

    def probe(name, device, interpreter):
        calls.append(name)
        return ANSWER

    monkeypatch.setattr(inventory, "_probe", probe)
    monkeypatch.setattr(inventory, "ANSWERS", tmp_path / "answers")
    home = tmp_path / "torch-cpu"
    (home / "bin").mkdir(parents=True)
    (home / "lib/python3.11/site-packages").mkdir(parents=True)
    (home / "bin/python").write_text("")
    (home / ".stamp").write_text("lock 1")
    monkeypatch.setattr(environments, "path", lambda name, kind: tmp_path / f"{name}-{kind}")
    return calls


def listed(capsys, monkeypatch, *words: str, width: int = 80) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    assert runner.main(["list", *words]) == 0
    return capsys.readouterr().out


def test_an_environment_is_asked_once_until_something_it_depends_on_changes(asked, tmp_path, monkeypatch):
    home = tmp_path / "torch-cpu"
    code = tmp_path / "frameworks"
    code.mkdir()
    monkeypatch.setattr(inventory, "SUITE", tmp_path)

    def count() -> int:
        assert inventory.ask("torch", "cpu", None) == ANSWER
        return len(asked)

    assert [count(), count()] == [1, 1]
    (home / ".stamp").write_text("lock 2")
    assert [count(), count()] == [2, 2]
    os.utime(home / "bin/python", ns=(1, 1))
    assert [count(), count()] == [3, 3]
    (home / "lib/python3.11/site-packages/new.py").write_text("")
    os.utime(home / "lib/python3.11/site-packages", ns=(2, 2))
    assert [count(), count()] == [4, 4]
    (code / "adapter.py").write_text("changed = True")
    assert [count(), count()] == [5, 5]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert [count(), count()] == [6, 6]


def test_what_could_not_be_asked_is_asked_again(asked, monkeypatch):
    monkeypatch.setattr(inventory, "_probe", lambda *_: asked.append("torch") or "no: it did not answer")
    for number in (1, 2):
        assert inventory.ask("torch", "cpu", None) == "no: it did not answer"
        assert len(asked) == number


def test_the_list_fits_80_columns_and_cuts_nothing(asked, capsys, monkeypatch):
    text = listed(capsys, monkeypatch)
    assert max(map(len, text.splitlines())) <= 80
    words = text.split()
    for word in [*workloads.names(), *sweep.presets(), "ATTENTION=fused|explicit", "MASK=none|full|padded"]:
        assert word in words, word
    assert text.count("ATTENTION=") == 8  # sizes of one model stand together
    assert "inductor-max-autotune-no-cudagraphs" in text
    assert "torch 9.9 on cpu" in text
    assert "no: no compiler here" in text
    assert "not installed: make setup FRAMEWORK=jax DEVICE=cpu" in " ".join(words)
    assert "measured only if FRAMEWORK names it" in " ".join(words)
    assert re.search(r"\n  jit \(graph\) +jax.jit of the whole model", text)  # not asked: it is not here
    assert re.search(r"\n  jit-unfused \(ladder\) +jax.jit of", text) and "\n  cudagraphs (by name) " in text


def test_filters(asked, capsys, monkeypatch):
    one = listed(capsys, monkeypatch, "--framework", "pytorch")
    assert "torch 9.9 on cpu" in one
    assert "jax" not in one
    assert "bert-base" not in one
    other = listed(capsys, monkeypatch, "--workload", "bert,mlp")
    assert "bert-base" in other
    assert "mlp" in other
    assert "bert-tiny" not in other
    assert "torch" not in other
    both = listed(capsys, monkeypatch, "--framework", "torch", "--workload", "mlp")
    assert "mlp" in both
    assert "torch 9.9" in both
    assert asked == ["torch"]


def test_an_interpreter_that_does_not_run_is_one_sentence(capsys):
    assert runner.main(["list", "--framework", "torch", "--python", "/nowhere/python"]) == 2
    assert "PYTHON=/nowhere/python: no interpreter" in capsys.readouterr().err


def test_the_real_probe_answers_for_the_reference(tmp_path, monkeypatch):
    monkeypatch.setattr(inventory, "ANSWERS", tmp_path)
    answer = inventory.ask("numpy", "cpu", None)
    assert answer["obstacle"] is None
    assert answer["versions"]["numpy"]


def test_an_answer_that_cannot_be_kept_is_given_all_the_same(asked, monkeypatch, tmp_path):
    (tmp_path / "a file").write_text("")
    monkeypatch.setattr(inventory, "ANSWERS", tmp_path / "a file" / "answers")
    assert [inventory.ask("torch", "cpu", None) for _ in range(2)] == [ANSWER, ANSWER]
    assert len(asked) == 2


def test_a_kept_answer_that_is_torn_or_of_another_form_is_asked_for_again(asked):
    inventory.ask("torch", "cpu", None)
    (kept,) = inventory.ANSWERS.iterdir()
    for content in ("[]", "3", '{"key": ', ""):
        kept.write_text(content)
        assert inventory.ask("torch", "cpu", None) == ANSWER
    assert len(asked) == 5
