"""Torch's mode `cuda-graph`: with a double of the recorder on the CPU, and as it is where an environment has a GPU."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from conftest import ROOT
from test_frameworks import interpreter

from harness import environments

CHECK = ROOT / "tests/checks/torch_cuda_graph.py"


def checked(python: Path, *words: str) -> subprocess.CompletedProcess:
    return subprocess.run([str(python), str(CHECK), *words], cwd=ROOT, capture_output=True, text=True)


def test_with_a_double_of_the_recorder():
    done = checked(interpreter("torch"))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 6


def test_a_replay_that_computes_nothing_is_found():
    done = checked(interpreter("torch"), "--double", "Idle")
    assert done.returncode != 0
    assert "AssertionError: nan" in done.stderr


def test_on_a_gpu():
    python = environments.path("torch", "gpu") / "bin" / "python"
    visible = "import sys, torch; sys.exit(not torch.cuda.is_available())"
    if not python.exists() or subprocess.run([str(python), "-c", visible], capture_output=True).returncode:
        pytest.skip("no environment of torch sees a GPU: make setup FRAMEWORK=torch DEVICE=gpu")
    done = checked(python, "--device", "gpu:0")
    assert done.returncode == 0, done.stderr
