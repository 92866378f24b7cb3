"""Costs of user models with a table: only the rows that a call gathers must move."""

from __future__ import annotations

import pytest
from doubles.environment import run_in

pytestmark = pytest.mark.slow

INPUTS = "import numpy as np\n\ndef inputs(batch_size=4):\n    return np.arange(batch_size, dtype=np.int32)\n"
FILES = {
    "torch": """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.last = torch.nn.Embedding(1000, 8), torch.nn.Linear(8, TIED or 2, bias=False)
        if TIED:
            self.last.weight = self.table.weight

    def forward(self, ids):
        return self.last(self.table(ids))

def model():
    return Net()

def inputs(batch_size=4):
    return torch.arange(batch_size, dtype=torch.int32)
""",
    "jax": INPUTS
    + """
import jax.numpy as jnp

def model():
    weights = {"table": jnp.ones((1000, 8)), "last": jnp.ones((8, 2))}
    return lambda held, ids: jnp.take(held["table"], ids, axis=0) @ (held["table"].T if TIED else held["last"]), weights
""",
    "tensorflow": INPUTS
    + """
import tensorflow as tf

class Net(tf.Module):
    def __init__(self):
        self.table, self.last = tf.Variable(tf.ones((1000, 8))), tf.Variable(tf.ones((8, 2)))

    def __call__(self, ids):
        rows = tf.nn.embedding_lookup(self.table, ids)
        return tf.matmul(rows, self.table, transpose_b=True) if TIED else rows @ self.last

def model():
    return Net()
""",
}
COUNTED = """
from importlib import import_module
import workloads
from measurement.cells import Cell

adapter = import_module(f"frameworks.{framework}.adapter").Adapter()
for tied, needed in ((0, 4 * 8 + 8 * 2 + 4 * 2), (1000, 1000 * 8 + 4 * 1000)):
    path = f"{folder}/table_{tied}.py"
    open(path, "w").write(f"TIED = {tied}\\n{text}")
    workloads.add({path: path})
    workload = workloads.get(path)
    cell = Cell(framework, path, "own", "inference", "cpu", "fp32", 1, (("batch_size", 4),), "eager")
    adapter.configure(cell)
    shape = dict(cell.parameters)
    step = adapter.prepare(workload, cell, workload.seeded_weights(shape, 0), [workload.inputs(shape, 1)])
    cost = step.user_model.cost()
    assert cost.bytes == 4 * (4 + needed), (tied, cost)
    assert tied or cost.unfused_bytes < 4 * 1000, cost
"""


@pytest.mark.parametrize("framework", FILES)
def test_of_a_table_the_gathered_rows_are_counted_unless_more_is_read(framework, tmp_path):
    given = f"framework, folder, text = {framework!r}, {str(tmp_path)!r}, {FILES[framework]!r}"
    run_in(framework, given, COUNTED)
