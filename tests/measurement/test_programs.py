"""A program that is asked for a fact holds nothing up, whatever it does, and nothing of it stays."""

from __future__ import annotations

import selectors
import time

import pytest
from doubles.suite import PATIENCE, processes_naming, wait_for

import runner
from environments import environments
from execution import cluster
from measurement import machine, programs
from records import runs


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo abc", "abc\n"),
        ("printf 'a\\377b'", "a\ufffdb"),
        ("exit 0", ""),
        ("echo abc; exit 3", None),
        ("kill -9 $$", None),
        (f"head -c {programs.MOST + 1} /dev/zero", None),
        ("sleep 1000 & echo abc", "abc\n"),
    ],
)
def test_a_program_s_words_or_nothing(script, told):
    assert programs.answer(["sh", "-c", script]) == told


def test_one_that_does_not_end_is_ended_with_what_it_started(tmp_path):
    mark = str(tmp_path / "mark")
    script = f"sh -c 'sleep 1000; : {mark}' & sleep 1000; : {mark}"
    assert programs.answer(["sh", "-c", script], seconds=0.3) is None
    wait_for(lambda: not processes_naming(mark))
    assert programs.answer([str(tmp_path / "missing")]) is None


def test_a_program_that_compares_something_need_not_listen():
    words = "é" * (1 << 19)
    assert programs.run(["cat"], PATIENCE, 2 * programs.MOST, words=words).output == words
    assert programs.run(["true"], PATIENCE, words=words).code == 0
    assert programs.run(["sh", "-c", "kill -9 $$"], PATIENCE).code == -9


# What PYTHON= names instead of an interpreter, and what is said of it.
NO_PYTHON = {
    "echo garbage": "is not a Python interpreter: asked for its version, it printed 'garbage'",
    "exit 0": "is not a Python interpreter: asked for its version, it printed ''; give the path of one",
    "echo 3": "is not a Python interpreter",
    "echo 3.11.x": "is not a Python interpreter",
    "echo 3.9": "is Python 3.9; workers need 3.11 or newer",
    "exit 3": "does not run, exit status 3.\n",
    "exec sleep 1000": "does not run: it did not end within 0.5 s",
    "exec yes": "does not run: it printed more than 1 MiB",
    "while :; do echo x >&2; done": "does not run: it printed more than 1 MiB",
    "sleep 1000 & sleep 1000": "does not run: it did not end within 0.5 s",
    "sleep 1000 & echo garbage": "is not a Python interpreter: asked for its version, it printed 'garbage'",
    "trap '' TERM HUP INT; while :; do sleep 1; done": "does not run: it did not end within 0.5 s",
}


@pytest.mark.parametrize("script", NO_PYTHON)
def test_a_python_that_is_none_is_one_sentence(tmp_path, monkeypatch, capsys, script):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n: {tmp_path}\n{script}\n")
    python.chmod(0o755)
    monkeypatch.setattr(environments, "ASKED", (0.5 if "0.5 s" in NO_PYTHON[script] else PATIENCE, programs.MOST))
    words = ["bench", "--framework", "torch", "--workload", "mlp", "--mode", "eager", "--python", str(python)]
    assert runner.main([*words, "--out", str(tmp_path / "run")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"runner.py: PYTHON={python}: ") and NO_PYTHON[script] in error and error.count("\n") <= 2
    assert not (tmp_path / "run").exists()
    wait_for(lambda: not processes_naming(str(tmp_path)))


def test_what_helpers_do_wrong_costs_no_run(tmp_path, monkeypatch):
    """`nvidia-smi` that prints rubbish was a traceback, and `git` that does not stop took all memory."""
    for name, script in (("nvidia-smi", "head -c 5000 /dev/urandom"), ("git", "exec yes")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    machine.gpus.cache_clear()
    try:
        assert machine.gpus() == () and runs.git_revision() is None
    finally:
        machine.gpus.cache_clear()


@pytest.mark.parametrize("words", ["{}", "[1]", '{"kind": ["a"], "machine_id": 3, "gpus": 4}', "\\377", ""])
def test_a_node_that_answers_something_else_serves_not(tmp_path, monkeypatch, words):
    (tmp_path / "srun").write_text(f"#!/bin/sh\nprintf '{words}\\n'\n")
    (tmp_path / "srun").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    (answer,) = cluster.probed(cluster.slurm.Allocation("7", ("n1",), 1)).values()
    assert isinstance(answer, str) and answer


def test_a_file_of_the_kernel_s_that_is_no_text_is_read_all_the_same(tmp_path):
    (tmp_path / "cpuinfo").write_bytes(b"cpu MHz\t: 1\n\xac")
    assert machine._read(str(tmp_path / "cpuinfo")) == "cpu MHz\t: 1\n\ufffd"
    assert machine._read(str(tmp_path / "missing")) == ""


def test_output_just_before_the_end_is_read(monkeypatch):
    """The program prints and ends between a look at its output that finds nothing and the look at whether it runs."""

    class Late(selectors.DefaultSelector):
        def select(self, timeout=None):
            ready = super().select(0)
            time.sleep(0.2)
            return ready

    monkeypatch.setattr(programs.selectors, "DefaultSelector", Late)
    assert programs.run(["sh", "-c", "sleep 0.1; echo x"], PATIENCE).output == "x\n"
