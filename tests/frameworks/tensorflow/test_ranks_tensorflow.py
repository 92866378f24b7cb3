"""Training on several devices of one TensorFlow process: losses of one process, with a replica on each device."""

from __future__ import annotations

import pytest
from doubles.environment import run_in

pytestmark = pytest.mark.slow

CHECK = """
import os
os.environ |= {"EAGER_VS_GRAPH_DEVICES": "2", "TF_NUM_INTRAOP_THREADS": "2"}
import numpy as np
import tensorflow as tf
import workloads
from frameworks.tensorflow.adapter import Adapter
from measurement.cells import Cell

adapter = Adapter()
adapter.smoke_test("cpu")  # settles the devices
for name in ("gpt-tiny", "resnet-tiny"):
    workload = workloads.get(name, "training")
    parameters = {parameter.name: parameter.default for parameter in workload.parameters}
    parameters |= {"batch_size": 2, "width": 8, "depth": 2, "seq_len": 8, "image": 32, "layout": "nhwc"}
    parameters |= {"attention": "explicit"}
    parameters = {key: value for key, value in parameters.items() if key in {p.name for p in workload.parameters}}
    parameters |= {"ranks": 2, "strategy": "ddp"}
    weights, sets = workload.seeded_weights(parameters, 0), workload.sets(parameters, 0)[:3]
    formulas = {"adamw_epsilon": "uncorrected", "batch_statistics": "rank"}
    expected = workload.references(parameters | formulas, weights, sets)
    for mode in ("eager", "function"):
        cell = Cell("tensorflow", name, "plain", "training", "cpu", "fp32", 1, tuple(parameters.items()), mode)
        assert adapter.configure(cell).threads == 1
        step = adapter.prepare(workload, cell, weights, sets)
        step()
        step.rewind()
        for outputs in expected:
            arrays = adapter.to_numpy(step())
            assert arrays.keys() == outputs.keys()
            for key, value in outputs.items():
                assert np.allclose(arrays[key], value, rtol=1e-3, atol=1e-5), (name, mode, key)
        assert step.capture().whole == (mode == "function"), step.capture()
"""


def test_losses_are_those_of_one_process():
    run_in("tensorflow", CHECK)
