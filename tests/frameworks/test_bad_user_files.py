"""Users' files that cannot be measured, beside one that can: one run on torch, as one types it."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

from environments import environments

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("own_bad")]

NET = """
import os, sys, torch{missing}

class Net(torch.nn.Linear):
    def forward(self, x):
        {line}
        return super().forward(x)

def model():
    return Net({size}, {size})

def inputs(batch_size):
    return torch.randn(batch_size, 8)
"""
# The line of `forward`, and what the run ends in for it.
LINES = {
    "good": ("pass", ("", "")),
    "floods": ("print('x' * 100_000)", ("", "")),
    "forks": ("os.fork()", ("error", "forks the measuring process")),
    "raises": ("raise KeyError('two\\nlines')", ("error", "KeyError: 'two\\nlines' (raises.py:6)")),
    "exits": ("sys.exit(3)", ("error", "the model called exit(3) (exits.py:6)")),
    "huge": ("pass", ("oom", " (huge.py:10)")),
    "misses": (
        "pass",
        ("error", "ModuleNotFoundError: No module named 'absent_here' (misses.py:2): set PYTHON to an interpreter"),
    ),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> tuple[Path, str]:
    """The run's folder, and what was on the screen."""
    if not environments.path("torch", "cpu").exists():
        pytest.skip("torch's environment is not made")
    folder = tmp_path_factory.mktemp("bad")
    for name, (line, _) in LINES.items():
        text = NET.format(
            line=line, size=1 << 20 if name == "huge" else 8, missing=", absent_here" * (name == "misses")
        )
        (folder / f"{name}.py").write_text(text)
    files = ",".join(str(folder / f"{name}.py") for name in LINES)
    words = ["--workload", files, "--mode", "eager", "--budget", "0.1", "--out", str(folder / "run")]
    command = [sys.executable, "tests/doubles/launches.py", "1", "bench", *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 3, done.stderr
    return folder / "run", done.stdout


@pytest.mark.parametrize("name", LINES)
def test_a_bad_file_is_a_sentence_and_the_others_are_measured(run, name):
    folder, screen = run
    with open(folder / "results.csv", newline="") as table:
        (row,) = [row for row in csv.DictReader(table) if row["workload"] == f"{name}.py"]
    status, words = LINES[name][1]
    assert words in row["reason"] and "\n" not in row["reason"], row
    if not status:
        assert float(row["latency_ms_median"]) > 0 and row["program"] == ""
        return
    assert row["status"] == status, row
    assert f"torch eager of {name}.py: {status}: " in screen
    (told,) = [line for line in screen.splitlines() if line.startswith(f"{name}.py in PyTorch does not run and is sk")]
    assert words in told and screen.index(told) < screen.index("Weights and reference outputs")


def test_files_that_are_all_bad_end_the_command_before_anything_is_made(run):
    folder, _ = run
    files = ",".join(str(folder.parent / f"{name}.py") for name in ("raises", "exits"))
    out = folder.parent / "none" / "run"
    words = [sys.executable, "runner.py", "bench", "--workload", files, "--out", str(out), "--dry-run"]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2 and not out.parent.exists()
    assert done.stderr == (
        "runner.py: raises.py in PyTorch does not run: KeyError: 'two\\nlines' (raises.py:6); "
        "exits.py in PyTorch does not run: the model called exit(3) (exits.py:6)\n"
    )
    assert "4 cells, about" in done.stdout and "Weights" not in done.stdout


def test_the_traceback_is_in_the_log_that_the_screen_names(run):
    folder, screen = run
    assert f"Logs: {folder}/processes/*/worker.log" in screen
    logs = list(folder.glob("processes/*/worker.log"))
    text = "".join(log.read_text(errors="replace") for log in logs)
    assert "KeyError: 'two\\nlines'" in text and "Traceback" in text
    assert all(log.stat().st_size < 80 << 20 for log in logs)
