"""Code that runs in a framework's own environment, as the tests' has no framework."""

from __future__ import annotations

import subprocess
import textwrap
from pathlib import Path

import frameworks
from harness import environments

ROOT = Path(__file__).resolve().parent.parent.parent


def run_in(framework: str, *pieces: str) -> None:
    """Run code in the framework's environment, with the variables of its workers; what the code asserts is the test."""
    python = environments.path(framework, "cpu") / "bin" / "python"
    assert python.exists(), f"the environment of {framework} is missing: make setup FRAMEWORK={framework}"
    code = "\n".join(textwrap.dedent(piece) for piece in pieces)
    variables = {"PATH": "/usr/bin:/bin", **frameworks.describe(framework).environment(2, "cpu")}
    command = [str(python), "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout.decode()


# Steps and programs of small models, as a worker makes them.
MODELS = """
from importlib import import_module
import workloads
from frameworks import program as compared
from measurement.cells import Cell

SHAPE = {"batch_size": 2, "seq_len": 8, "mask": "none", "attention": "explicit", "width": 16, "depth": 2}
CELLS = [
    ("bert-tiny", "library", "inference", {}),
    ("bert-tiny", "plain", "inference", {"mask": "full"}),
    ("bert-tiny", "plain", "training", {"batch_size": 1}),
    ("gpt-tiny", "plain", "inference", {}),
    ("mlp", "plain", "inference", {}),
    ("mlp", "plain", "training", {"batch_size": 1}),
    ("mlp", "plain", "training", {"accumulate": 3}),
]
adapter = None

def step_of(framework, mode, name, implementation, pass_name, changes):
    global adapter
    adapter = adapter or import_module(f"frameworks.{framework}.adapter").Adapter()
    workload = workloads.get(name, pass_name)
    shape = {**SHAPE, "accumulate": 1, **changes}
    cell = Cell(framework, name, implementation, pass_name, "cpu", "fp32", 2, tuple(shape.items()), mode)
    adapter.configure(cell)
    return adapter.prepare(workload, cell, workload.seeded_weights(shape, 0), [workload.inputs(shape, 0)])

def program_of(*cell):
    step = step_of(*cell)
    if step.load:
        step.load()
    step()
    return step.program()
"""
