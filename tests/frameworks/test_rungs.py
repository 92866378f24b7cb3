"""The rungs of each framework's ladder in its own environment: each computes what eager does, and is what it says."""

from __future__ import annotations

import pytest
from doubles.environment import MODELS, run_in

import frameworks

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
# A rung's step beside eager mode's: the same numbers, the same program, and proof of having captured all of it.
COMPARED = """
import numpy as np

def arrays(step):
    if step.load:
        step.load()
    output = step()
    adapter.synchronize(output)
    return {name: value.copy() for name, value in adapter.to_numpy(output).items()}

def rung(framework, mode, *cell):
    eager, step = step_of(framework, "eager", *cell), step_of(framework, mode, *cell)
    right, values = arrays(eager), arrays(step)
    for name, value in right.items():
        scale = np.sqrt(np.mean(value**2))
        assert np.sqrt(np.mean((values[name] - value) ** 2)) <= 1e-5 * scale, (mode, name)
    verdict = compared.verdict([tuple(eager.program())], tuple(step.program()))
    assert verdict["program"] == "same", (mode, verdict)
    captured = step.capture()
    assert captured.whole and captured.compilations, (mode, captured)
    return step, captured

MLP, BERT = ("mlp", "plain", "inference", {}), ("bert-tiny", "plain", "inference", {"mask": "full"})
"""
# What tells each rung from its neighbours.
PROOFS = {
    "torch": """
import torch


def operators(step):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        step()
    return {event.name for event in profile.events()}

dynamo, _ = rung("torch", "dynamo", *MLP)
decomposed, captured = rung("torch", "aot-eager", *MLP)
assert {"aten::native_layer_norm", "aten::relu"} <= operators(dynamo)  # eager's own operators
assert "aten::native_layer_norm" not in operators(decomposed) and "aten::var_mean" in operators(decomposed)
assert captured.backend.startswith("aot_eager_decomp_partition")
rung("torch", "aot-eager", "mlp", "plain", "training", {"batch_size": 1})

DECODE = ("gpt-tiny", "plain", "decode", {"context": 12, "cache": "static"})
still, growing = (step_of("torch", mode, *DECODE) for mode in ("eager", "eager-dynamic-cache"))
right = arrays(still)
for name, value in arrays(growing).items():
    assert np.allclose(value, right[name], atol=1e-4), name
for step, has, lacks in ((still, "aten::index_copy_", "aten::cat"), (growing, "aten::cat", "aten::index_copy_")):
    assert has in operators(step) and lacks not in operators(step), has
""",
    "jax": """
from frameworks.jax.modes import compiling
from frameworks.jax.models import plain

for mode, graphs in (("jit-blocks", 2), ("jit-unfused", 1)):
    _, captured = rung("jax", mode, *MLP)
    assert captured.graphs == graphs, captured
for name in ("bert-tiny", "gpt-tiny"):  # embeddings, two layers, head
    step = step_of("jax", "jit-blocks", name, "plain", "inference", {})
    step()
    assert step.capture().whole and step.capture().detail.startswith("4 blocks a call"), step.capture()

# XLA fuses where nothing keeps it from it, which the proof has to see.
compiling.NO_FUSION["cpu"] = {}
step = step_of("jax", "jit-unfused", *MLP)
step()
assert not step.capture().whole and "in spite of the option" in step.capture().detail, step.capture()
# An operator between two blocks is seen as well.
forward = plain.mlp_forward
plain.mlp_forward = lambda layer, params, x: {"output": forward(layer, params, x)["output"] * 2}
step = step_of("jax", "jit-blocks", *MLP)
step()
assert not step.capture().whole and "op by op between them: {" in step.capture().detail, step.capture()
""",
    "tensorflow": """
from tensorflow.python.eager import context

def kinds(step):
    # Of the graph that is executed; the runtime tells it while it optimizes a function, at the first call.
    context.enable_run_metadata()
    step()
    (function_graph,) = context.export_run_metadata().function_graphs
    context.disable_run_metadata()
    return [node.op for node in function_graph.post_optimization_graph.node]

as_traced, rewritten = (kinds(step_of("tensorflow", mode, *MLP)) for mode in ("function-unoptimized", "function"))
assert {"MatMul", "BiasAdd"} <= set(as_traced) and "_FusedMatMul" not in as_traced, as_traced
assert "_FusedMatMul" in rewritten and "BiasAdd" not in rewritten, rewritten
_, captured = rung("tensorflow", "function-unoptimized", *MLP)
assert captured.backend == "no rewriter"
rung("tensorflow", "function-unoptimized", "mlp", "plain", "training", {"batch_size": 1})
""",
    "paddle": """
for mode, setting in (
    ("inference-no-passes", "ir_optim=False, onednn=False"), ("inference-no-onednn", "ir_optim=True, onednn=False")
):
    _, captured = rung("paddle", mode, *BERT)
    assert setting in captured.backend, captured
_, captured = rung("paddle", "inference", *MLP)
assert "ir_optim=True" in captured.backend, captured
""",
}


@pytest.mark.parametrize("framework", PROOFS)
def test_rungs_compute_what_eager_does_and_are_what_they_say(framework):
    run_in(framework, MODELS, COMPARED, PROOFS[framework])


def test_every_rung_that_nobody_deploys_is_tried_here():
    for name in frameworks.NAMES:
        for mode in frameworks.describe(name).modes:
            assert not mode.is_rung or f'"{mode.name}"' in PROOFS[name] or "".join(mode.devices) == "gpu", mode.name


def test_command_buffers_that_cannot_be_left_out_are_no_mode_without_them():
    run_in(
        "jax",
        """
from frameworks.adapter import Unsupported
from frameworks.jax.modes import compiling
from measurement.cells import Cell

def options(mode):
    return compiling.options(Cell("jax", "mlp", "plain", "inference", "gpu:0", "fp32", 1, (), mode))

assert options("jit") == {}
compiling.NO_COMMAND_BUFFERS = {"xla_no_such_option": ""}
try:
    options("jit-uncaptured")
except Unsupported as refusal:
    assert "omit this mode" in str(refusal)
else:
    raise AssertionError("it would be jit")
""",
    )


def test_a_shell_that_hides_the_gpu_from_jax_compares_so():
    run_in(
        "jax",
        """
import os
from frameworks.jax import runtime

assert os.environ["JAX_PLATFORMS"] == "cpu"
assert runtime.problem("gpu:0") == "JAX_PLATFORMS=cpu hides the GPU from JAX: unset it.", runtime.problem("gpu:0")
""",
    )
