"""The job that LAUNCHER=slurm submits measures what was parsed, from the folder where it was typed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT
from doubles import pretended_slurm

import runner
from eager_vs_graph import console
from execution import campaign, submission
from execution.campaign import Request
from plan import sweep

RUNNER = "import json, os, sys\nprint(json.dumps([os.getcwd(), *sys.argv[1:]]))\n"
SLURM = ("--launcher", "slurm")
SWEEP = """
framework = ["torch", "jax"]
workload = "mlp"
batch = [1, 8]
budget = 0.5
isolate = true
energy = false
policy = "torch-openmp-idle=sleep"
"""


@pytest.fixture
def submitted(tmp_path, monkeypatch):
    """Return a function that submits a run, and returns the words with which its job starts and resumes it."""
    monkeypatch.setenv("PATH", pretended_slurm.install(tmp_path / "bin", 1, 0.0, 0.0, {})["PATH"])
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    monkeypatch.setattr(campaign.preparation, "environments_of", lambda *arguments: {})
    (tmp_path / "suite").mkdir()
    (tmp_path / "suite/runner.py").write_text(RUNNER)
    monkeypatch.setattr(submission, "SUITE", tmp_path / "suite")
    monkeypatch.chdir(tmp_path)

    def submit(*typed: str, words: list[str] | None = None) -> tuple[list[str], list[str]]:
        monkeypatch.setattr(sys, "argv", ["runner.py", *typed])
        assert runner.main(words or list(typed)) == 0
        (script,) = tmp_path.glob("run/job.sh")

        def ran() -> list[str]:
            done = subprocess.run(["bash", script], cwd="/", capture_output=True, text=True, check=True)
            folder, *given = json.loads(done.stdout)
            assert folder == str(tmp_path)
            return given

        first = ran()
        (script.parent / "plan.json").touch()
        return first, ran()

    return submit


def request_of(words: list[str]) -> Request:
    """The request of a job's words, as its runner parses them."""
    return Request.from_arguments(runner.parse(words)[1])


@pytest.mark.parametrize(
    ("typed", "flag", "value"),
    [
        (("ladder", "FRAMEWORK=torch", "WORKLOAD=mlp"), "mode", "ladder"),
        (("ladder", "FRAMEWORK=torch", "WORKLOAD=mlp", "MODE=graph"), "mode", "graph"),
        (("bench", "WORKLOAD=mlp", "FILTER=*[!']mlp*"), "filter", "*[!']mlp*"),
        (("bench", "WORKLOAD=mlp"), "threads", None),  # the nodes' CPUs decide
    ],
)
def test_a_job_measures_what_its_command_does(submitted, typed, flag, value):
    first, again = submitted(*typed, *SLURM, "OUT=run", "NODES=2")
    request = request_of(first)
    assert request.flags.get(flag) == value
    assert request.flags["launcher"] == "slurm"
    assert request.out == request_of(again).resume == str(Path("run").resolve())


def test_a_model_of_the_console_is_measured_from_any_folder_with_its_interpreter(submitted, monkeypatch):
    shutil.copy(ROOT / "examples/torch_mlp.py", "my_model.py")
    monkeypatch.setattr(console, "_interpreter", lambda: ("/a/python", "this command's environment", ["torch"]))
    typed = ("my_model.py", *SLURM, "--batch", "1,8", "--out", "run")
    for words in submitted(*typed, words=console.completed(typed)):
        request = request_of(words)
        assert (request.flags["workload"], request.python) == (str(Path("my_model.py").resolve()), "/a/python")
        assert request.resume or request.flags["batch"] == "1,8"


@pytest.mark.parametrize("more", [(), ("MODE=eager", "FORCE=1")])
def test_a_sweep_file_reaches_the_job(submitted, more):
    Path("sweep.toml").write_text(SWEEP)
    typed = ("bench", "SWEEP=sweep.toml", *more, *SLURM)
    first, _ = submitted(*typed, "OUT=run")
    assert sweep.resolve(request_of(first).flags) == sweep.resolve(request_of(list(typed)).flags)


def test_how_it_is_measured_and_answered_reaches_the_job_and_its_resumption(submitted, monkeypatch):
    monkeypatch.setattr(campaign, "with_requirements", lambda *arguments: "/made/bin/python")
    own = ("REQUIREMENTS=own.txt", "TIMEOUT=60", "SCRATCH=/scratch", "MAX_SLOWDOWN=5%", "JSON=1")
    for words in submitted("bench", "FRAMEWORK=torch", "WORKLOAD=mlp", *own, *SLURM, "OUT=run"):
        arguments = runner.parse(words)[1]
        request = Request.from_arguments(arguments)
        assert (request.python, request.timeout, request.scratch) == ("/made/bin/python", 60, "/scratch")
        assert (request.requirements, arguments.max_slowdown, arguments.json) == (None, "5%", True)
