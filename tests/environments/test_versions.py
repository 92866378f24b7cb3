"""Installations that lack what other versions have, in the frameworks' own environments: sentences, not tracebacks."""

from __future__ import annotations

import subprocess

import pytest
from conftest import ROOT
from doubles.environment import interpreter

pytestmark = pytest.mark.slow


def printed_by(framework: str, code: str) -> str:
    """What a piece of code prints in the framework's environment."""
    done = subprocess.run([str(interpreter(framework)), "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("module", "name"),
    [("torch", "_TorchCompileInductorWrapper"), ("torch._guards", "CompileContext")],
)
def test_a_torch_without_what_proves_a_capture_says_so(module, name):
    code = f"""
import importlib, torch
from frameworks.adapter import Unsupported
from frameworks.torch.modes import graphs
graphs.compile_model(torch.nn.Linear(2, 2), "inductor", torch.device("cpu"), "static")
delattr(importlib.import_module("{module}"), "{name}")
try:
    graphs.compile_model(torch.nn.Linear(2, 2), "inductor", torch.device("cpu"), "static")
except Unsupported as error:
    print(error)
"""
    assert f"has no {module}.{name}, which the suite needs to prove" in printed_by("torch", code)


def test_a_jax_without_a_cache_size_counts_by_its_events():
    code = """
from types import SimpleNamespace
import jax
from frameworks.jax.modes.graphs import Compilations
from measurement.cells import Cell
compilations = Compilations()
def whole_model_x(x):
    return x + 1
real = jax.jit(whole_model_x)
graph = SimpleNamespace(__name__="whole_model_x", lower=real.lower)
cell = Cell("jax", "mlp", "plain", "inference", "cpu", "fp32", 1, (), "jit")
capture = compilations._of_graph(cell, graph, (1.0,), "xla:cpu", "")
before = capture()
real(1.0)
print(before.whole, before.graphs, capture().whole, capture().graphs, capture().compilations)
"""
    assert printed_by("jax", code) == "False 0 True 1 1"


def test_jax_reads_back_every_switch():
    code = """
from frameworks.jax.adapter import READ_BACK
import jax
print([name for name in READ_BACK if name not in jax.config.values])
"""
    assert printed_by("jax", code) == "[]"


@pytest.mark.parametrize(
    ("framework", "model"), [("torch", "BertModel"), ("tensorflow", "TFBertModel"), ("jax", "FlaxBertModel")]
)
def test_a_transformers_without_the_model_leaves_plain(framework, model):
    code = f"""
import sys, types
import {framework}
sys.modules["transformers"] = types.ModuleType("transformers")
sys.modules["transformers"].BertConfig = None
from frameworks.adapter import Unsupported
try:
    import frameworks.{framework}.models.library
except Unsupported as error:
    print(error)
"""
    said = printed_by(framework, code)
    assert said.startswith("the library model needs ")
    assert f"cannot import name '{model}'" in said
    assert said.endswith("or measure IMPL=plain.")
