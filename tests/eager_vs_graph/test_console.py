"""The console command's words, and the interpreter that it takes."""

from __future__ import annotations

import sys

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT))
from eager_vs_graph import console
from measurement.refusals import UsageError


@pytest.fixture
def installed(monkeypatch):
    """Return a function that says which modules this interpreter has."""

    def have(*modules: str) -> None:
        monkeypatch.setattr(console.importlib.util, "find_spec", lambda name: name if name in modules else None)

    have()
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    return have


def test_a_model_file_alone_is_measured_with_this_interpreter(installed, capsys):
    installed("torch", "jax")
    assert console.completed(["my_model.py", "--batch", "1,8"]) == [
        *("bench", "--workload", "my_model.py", "--batch", "1,8", "--python", sys.executable),
    ]
    assert f"Measuring with {sys.executable}, which has torch and jax." in capsys.readouterr().err


def test_without_a_model_the_frameworks_that_are_there_are_measured(installed):
    installed("jax")
    assert console.completed(["bench"])[-2:] == ["--framework", "jax"]
    assert console.completed(["bench", "FRAMEWORK=torch"])[-2:] == ["--python", sys.executable]


@pytest.mark.parametrize("words", [["report"], ["bench", "--help"], ["list"], ["compare", "a", "b"]])
def test_commands_that_measure_nothing_are_left_alone(installed, words):
    assert console.completed(words) == words


def test_an_interpreter_that_is_named_is_taken(installed):
    for words in (["bench", "--python", "/a/python"], ["bench", "PYTHON=/a/python"], ["bench", "--python=/a/python"]):
        assert console.completed(words) == words


@pytest.mark.parametrize("words", [["--python", "locked"], ["--python=locked"], ["PYTHON=locked"]])
def test_locked_asks_for_the_suites_own_environments(installed, words):
    assert console.completed(["bench", *words, "--batch", "1"]) == ["bench", "--batch", "1"]


def test_without_any_framework_one_sentence_names_the_ways_out(installed):
    with pytest.raises(UsageError, match=r"has no PyTorch.*--python PATH.*--python locked"):
        console.completed(["bench"])


@pytest.mark.slow
def test_an_active_environment_is_taken_where_this_one_has_no_framework(installed, monkeypatch):
    home = ROOT / ".venvs/torch-cpu"
    monkeypatch.setenv("VIRTUAL_ENV", str(home))
    assert console.completed(["bench"])[-4:] == ["--python", f"{home}/bin/python", "--framework", "torch"]
