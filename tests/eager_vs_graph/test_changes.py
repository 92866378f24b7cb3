"""Modules and classes that the caller of `compare` changed at run time: another process computes something else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from conftest import ROOT

NETS = """
import torch, time
DEPTH = 1
STARTED = time.time()
_calls = 0
WIDTHS = {"first": 8}
def mix(value): return value
def scaled(value): return value * DEPTH
class Net(torch.Module):
    def forward(self, value): return mix(value) * DEPTH
"""
TORCH = """
import sys
from types import SimpleNamespace
class Module:
    def __call__(self, *inputs): return self.forward(*inputs)
    def parameters(self): return []
    def buffers(self): return []
    def modules(self): return [self]
    named_modules = modules
nn = SimpleNamespace(Module=Module)
"""
MAIN = """
import sys
from pathlib import Path
import nets, torch
from eager_vs_graph import carried
def other(*inputs): return 7
{change}
carried.write(Path("carried"), {model}, 4, framework="torch")
"""
LOADS = """
import sys
sys.path.insert(0, "carried")
import model
try:
    print(model.model()(model.inputs()))
except RuntimeError as error:
    print(error)
"""
CHANGES = {
    "nets.DEPTH": "nets.DEPTH = 40",
    "nets.WIDTHS": "nets.WIDTHS['first'] = 9",
    "nets.mix": "nets.mix = other",
    "nets.Net.forward": "nets.Net.forward = other",
    "torch.Module.__call__": "torch.Module.__call__ = other",
}
UNCHANGED = ["", "nets.STARTED = 0.0", "nets._calls += 1", "other = nets.mix"]


def loaded(folder, change: str, model: str = "nets.Net()") -> str:
    """Return what another process prints that loads a model after a change in the caller."""
    (folder / "nets.py").write_text(NETS)
    (folder / "torch.py").write_text(TORCH)
    (folder / "main.py").write_text(MAIN.format(change=change, model=model))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}
    for words in (["main.py"], ["-c", LOADS]):
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=folder, env=environment)
        assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_that_a_pickle_lacks_is_refused(tmp_path, name):
    assert loaded(tmp_path, CHANGES[name]).startswith(f"{name} differs in another process (")


def test_a_function_of_a_changed_module_is_refused(tmp_path):
    assert "nets.DEPTH differs" in loaded(tmp_path, "nets.DEPTH = 2", "nets.scaled")


@pytest.mark.parametrize("change", UNCHANGED)
def test_a_model_without_such_changes_is_loaded(tmp_path, change):
    assert loaded(tmp_path, change) == "4"


def test_several_changes_are_counted(tmp_path):
    found = loaded(tmp_path, "nets.DEPTH = 40; nets.mix = other")
    assert found.startswith("nets.DEPTH and 1 more differ in another process (40 in the caller, 1 there): ")
