"""The console command's words, and the interpreter that it takes."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT))
from eager_vs_graph import console
from measurement import places
from measurement.refusals import UsageError


@pytest.fixture
def installed(monkeypatch):
    """Return a function that says which modules this interpreter has."""

    def have(*modules: str, folders: tuple[str, ...] = ()) -> None:
        specs = {name: ModuleSpec(name, None, origin=f"/{name}/__init__.py") for name in modules}
        specs |= {name: ModuleSpec(name, None) for name in folders}
        monkeypatch.setattr(console.importlib.util, "find_spec", lambda name: specs.get(name))

    have()
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    return have


def test_a_model_file_alone_is_measured_with_this_interpreter(installed, capsys):
    installed("torch", "jax")
    assert console.completed(["my_model.py", "--batch", "1,8"]) == [
        *("bench", "--workload", "my_model.py", "--batch", "1,8", "--python", sys.executable),
    ]
    said = f"Measuring with {sys.executable} (this command's environment), which has torch and jax.\n"
    assert capsys.readouterr().err == said


def test_a_model_file_after_start_is_started_with_this_interpreter(installed):
    installed("torch")
    assert console.completed(["start", "my_model.py", "--processes", "3"]) == [
        *("start", "--workload", "my_model.py", "--processes", "3", "--python", sys.executable)
    ]
    assert console.completed(["start", "--processes", "3"])[:3] == ["start", "--processes", "3"]


def test_without_a_model_the_frameworks_that_are_there_are_measured(installed):
    installed("jax")
    assert console.completed(["bench"])[-2:] == ["--framework", "jax"]
    assert console.completed(["bench", "FRAMEWORK=torch"])[-2:] == ["--python", sys.executable]


@pytest.mark.parametrize("words", [["report"], ["bench", "--help"], ["list"], ["compare", "a", "b"]])
def test_commands_that_measure_nothing_are_left_alone(installed, words, capsys):
    assert console.completed(words) == words
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("words", [["--python", "/a/python"], ["PYTHON=/a/python"], ["--python=/a/python"]])
def test_an_interpreter_that_is_named_is_taken_and_said(installed, words, capsys):
    for command in ("bench", "doctor"):
        assert console.completed([command, *words]) == [command, *words]
        assert capsys.readouterr().err == "Measuring with /a/python (--python).\n"


@pytest.mark.parametrize("words", [["--python", "locked"], ["--python=locked"], ["PYTHON=locked"]])
def test_locked_asks_for_the_suites_own_environments(installed, words, capsys):
    assert console.completed(["bench", *words, "--batch", "1"]) == ["bench", "--batch", "1"]
    assert capsys.readouterr().err == "Measuring in the suite's own environments (--python).\n"


def test_without_any_framework_one_sentence_names_the_ways_out(installed, monkeypatch):
    with pytest.raises(UsageError, match=r"has no PyTorch.*--python PATH.*--python locked") as refused:
        console.completed(["bench"])
    monkeypatch.setattr(places, "PROGRAM", "egvg")
    assert places.as_typed(str(refused.value)) == str(refused.value)  # a wheel's "make" is another word


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("`make bench` makes one.", "`egvg bench` makes one."),
        ("Name two: make compare A=<run> B=<run>.", "Name two: egvg compare A=<run> B=<run>."),
        ("ValueError: make x (4, 4) or `x`; we make report files", None),
    ],
)
def test_commands_have_the_wheel_s_name_and_other_texts_stay(monkeypatch, text, typed):
    monkeypatch.setattr(places, "PROGRAM", "egvg")
    assert places.as_typed(text) == (typed or text)


def test_the_active_environment_is_said_where_the_command_has_its_own(installed, monkeypatch, tmp_path, capsys):
    """As with uvx and pipx, whose environment has the suite alone."""
    monkeypatch.setenv("VIRTUAL_ENV", str(tmp_path))
    monkeypatch.setattr(console, "_installed_for", lambda python, modules: ["jax"])
    assert console.completed(["ladder"]) == ["ladder", "--python", f"{tmp_path}/bin/python", "--framework", "jax"]
    said = f"Measuring with {tmp_path}/bin/python (the active environment), which has jax.\n"
    assert capsys.readouterr().err == said


@pytest.mark.slow
def test_an_active_environment_is_taken_where_this_one_has_no_framework(installed, monkeypatch):
    home = ROOT / ".venvs/torch-cpu"
    monkeypatch.setenv("VIRTUAL_ENV", str(home))
    assert console.completed(["bench"])[-4:] == ["--python", f"{home}/bin/python", "--framework", "torch"]


def test_a_folder_of_a_framework_s_name_is_no_framework(installed):
    installed("torch", folders=("jax",))
    assert console.completed(["bench"])[-2:] == ["--framework", "torch"]


@pytest.mark.parametrize("name", ["folder", "text.txt"])
def test_what_is_no_python_file_is_one_sentence(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "text.txt").write_text("")
    with pytest.raises(UsageError, match=rf"{name} is no Python file: give the path of a .py file"):
        console.completed([name])
