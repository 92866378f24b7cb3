"""ONNX Runtime: fused nodes stand for their parts, threads are counted and not only set, sessions share weights."""

from __future__ import annotations

import json
import subprocess

import pytest
from conftest import ROOT
from doubles.environment import run_in

from environments import environments

pytestmark = pytest.mark.slow
DIFFERENCES = {
    "fused": None,
    "biased skip": None,
    "other order of nodes": None,
    "computed of constants": None,
    "no bias": "add: in eager, not in the graph",
    "another epsilon": "layernormalization: epsilon 1e-12 in eager, 1e-05 in the graph",
    "tanh": "gelu: in eager, not in the graph (approximate none)",
    "unscaled": "mul: in eager, not in the graph",
    "activation": "matmul: in the graph, not in eager",
    "fused attention": "multiheadattention: in the graph, not in eager",
}
ADAPTER = """
import os
import numpy as np
import workloads
from frameworks.onnxruntime.adapter import Adapter
from measurement.cells import Cell

PARAMETERS = {"batch_size": 2, "seq_len": 8, "mask": "none", "attention": "explicit"}
workload, adapter = workloads.get("bert-tiny"), Adapter()
weights, sets = workload.seeded_weights(PARAMETERS, 0), [workload.inputs(PARAMETERS, seed) for seed in (0, 1)]

def cell(mode, shapes="static", threads=3):
    parameters = tuple(PARAMETERS.items())
    return Cell("onnxruntime", "bert-tiny", "plain", "inference", "cpu", "fp32", threads, parameters, mode, shapes)

def loaded(mode, shapes="static"):
    step = adapter.prepare(workload, cell(mode, shapes), weights, sets)
    step.load()
    return step
"""


@pytest.fixture(scope="module")
def differences() -> dict[str, str | None]:
    command = [str(environments.path("onnxruntime", "cpu") / "bin/python"), "tests/doubles/onnx_graphs.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("case", DIFFERENCES)
def test_a_fused_node_stands_for_its_parts(differences, case):
    assert differences[case] == DIFFERENCES[case]
    assert differences.keys() == DIFFERENCES.keys()


def test_the_pool_has_the_threads_that_were_asked_for():
    """Counted in the process, which a getter that echoes what was set is not: another pool is told from it."""
    run_in(
        "onnxruntime",
        ADAPTER,
        """
import onnxruntime
assert adapter.smoke_test("cpu").keys() >= {"matmul"}
onnxruntime.set_global_thread_pool_sizes, asked = lambda *sizes: asked(2, 1), onnxruntime.set_global_thread_pool_sizes
assert adapter.configure(cell("eager")).threads == 2
""",
    )


def test_modes_share_weights_and_no_session_has_a_pool_of_its_own():
    run_in(
        "onnxruntime",
        ADAPTER,
        """
assert adapter.configure(cell("eager")).threads == 3
before = len(os.listdir("/proc/self/task"))
steps = [loaded(mode, shapes) for mode in ("eager", "optimized") for shapes in ("static", "dynamic")]
for step in steps:
    step()
assert len(os.listdir("/proc/self/task")) == before
assert len(adapter.models) == 2  # a group each of static and of dynamic shapes
""",
    )


def test_only_a_session_of_fixed_shapes_is_opened_again_for_others():
    run_in(
        "onnxruntime",
        ADAPTER,
        """
adapter.configure(cell("eager"))
longer = {**PARAMETERS, "seq_len": 12}
for mode, shapes, opened in (("optimized", "static", 2), ("optimized", "dynamic", 1)):
    step = loaded(mode, shapes)
    first = step()
    other = step.rebound([adapter.place(cell(mode, shapes), workload.inputs(longer, 2))])
    assert adapter.to_numpy(other())["last_hidden_state"].shape == (2, 12, 128)
    step.rewind()
    again = step()
    assert (adapter.to_numpy(again)["pooler_output"] == adapter.to_numpy(first)["pooler_output"]).all()
    assert step.capture().compilations == opened, (mode, shapes)
""",
    )
