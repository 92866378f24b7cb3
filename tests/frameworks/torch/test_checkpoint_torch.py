"""Activation checkpointing with torch: backward computes blocks again, all but products with `selective`."""

from __future__ import annotations

import pytest
from doubles.environment import run_in

pytestmark = pytest.mark.slow

CHECK = """
from collections import Counter
import workloads
from frameworks.torch.adapter import Adapter
from measurement.cells import Cell
from torch.utils._python_dispatch import TorchDispatchMode

class Counting(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = Counter()

    def __torch_dispatch__(self, operator, types, operands=(), options=None):
        self.names[operator.overloadpacket.__name__] += 1
        return operator(*operands, **(options or {}))

workload = workloads.get("gpt-tiny", "training")
counts = {}
for kept in ("none", "selective", "full"):
    parameters = {one.name: one.default for one in workload.parameters}
    parameters |= {"batch_size": 1, "seq_len": 8, "attention": "explicit", "checkpoint": kept}
    weights, sets = workload.seeded_weights(parameters, 0), workload.sets(parameters, 0)[:3]
    expected = workload.references(parameters, weights, sets)
    for mode in ("eager", "dynamo"):
        cell = Cell("torch", "gpt-tiny", "plain", "training", "cpu", "fp32", 1, tuple(parameters.items()), mode)
        adapter = Adapter()
        adapter.configure(cell)
        adapter.start_compiler(cell)
        step = adapter.prepare(workload, cell, weights, sets)
        for outputs in expected:
            assert abs(float(adapter.to_numpy(step())["loss"][0]) / float(outputs["loss"][0]) - 1) < 1e-5
        assert step.capture().whole == (mode == "dynamo"), step.capture()
        if mode == "eager":
            with Counting() as counting:
                step()
            counts[kept] = [counting.names[name] for name in ("mm", "gelu")]
(products, gelus), (kept_products, computed_gelus), (all_products, all_gelus) = counts.values()
assert products == kept_products < all_products, counts
assert 0 < gelus < computed_gelus == all_gelus, counts
"""


def test_selective_keeps_products():
    run_in("torch", CHECK)
