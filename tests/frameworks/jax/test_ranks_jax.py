"""Training on several devices of one JAX process: losses of one process, and where the state lies."""

from __future__ import annotations

import pytest
from doubles.environment import run_in

pytestmark = pytest.mark.slow

CHECK = """
import os
os.environ |= {"PJRT_NPROC": "8", "NPROC": "8"}
import jax
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 4)
import workloads
from frameworks.jax.adapter import Adapter
from measurement.cells import Cell

MLP, LLAMA = {"width": 8, "depth": 2}, {"seq_len": 4, "attention": "explicit", "checkpoint": "selective"}
for name, sizes, strategy in (("mlp", MLP, "ddp"), ("mlp", MLP, "fsdp"), ("llama-tiny", LLAMA, "fsdp")):
    workload, adapter = workloads.get(name, "training"), Adapter()
    parameters = {"batch_size": 2, **sizes, "accumulate": 1, "ranks": 4, "strategy": strategy}
    weights, sets = workload.seeded_weights(parameters, 0), workload.sets(parameters, 0)[:3]
    losses = [float(outputs["loss"][0]) for outputs in workload.references(parameters, weights, sets)]
    for mode in ("jit",) if name == "llama-tiny" else ("eager", "jit"):  # XLA compiles each of its operators
        cell = Cell("jax", name, "plain", "training", "cpu", "fp32", 1, tuple(parameters.items()), mode)
        assert adapter.configure(cell).threads == 1
        step = adapter.prepare(workload, cell, weights, sets)
        step.rewind()
        for loss in losses:
            output = step()
            adapter.synchronize(output)
            assert abs(float(adapter.to_numpy(output)["loss"]) / loss - 1) < 1e-5
        assert step.capture().whole == (mode == "jit"), step.capture()
        parameter = max(jax.tree.leaves(step.call.trained.state), key=lambda leaf: leaf.size)
        assert len(parameter.sharding.device_set) == 4
        assert parameter.sharding.is_fully_replicated == (strategy == "ddp")
"""


def test_losses_are_those_of_one_process():
    run_in("jax", CHECK)
