"""Products of one row a sequence as sums: every framework computes the same, and none of them is a matrix product."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace

import pytest
from conftest import ROOT
from doubles import generating, summing
from doubles.environment import interpreter, run_in
from test_generation import modes_of, refusal

import frameworks
from workloads import get

pytestmark = pytest.mark.slow

NAMES = [name for name in frameworks.NAMES if "llama" in frameworks.describe(name).models.get("plain", ())]
MATRICES = 4  # of a layer
# Matrix products that a call has less: a layer's, the logits'.
LESS = {"decode": MATRICES * summing.LAYERS + 1, "prefill": 1}


def bytes_by_class(workload, parameters: dict, dtype: str) -> dict[str, int]:
    return {part.operator_class: part.bytes for part in workload.cost(parameters, dtype).operators}


@pytest.mark.parametrize(("dtype", "width"), [("fp32", 4), ("bf16", 2)])
@pytest.mark.parametrize("pass_name", ["decode", "prefill"])
def test_sums_write_and_read_what_is_summed_where_nothing_is_fused(pass_name, dtype, width):
    """By hand: rows times a matrix in float32 twice; in bf16 operands and results also once in float32."""
    workload, rows = get("llama-7b", pass_name), 3
    given = {"batch_size": rows, "context": 1024, "prompt": 128}
    usual, summed = (workload.cost(given | {"product": product}, dtype) for product in ("matmul", "sum"))
    sizes = [(4096, 32000)]
    if pass_name == "decode":
        sizes += 32 * [(4096, 3 * 4096), (4096, 4096), (4096, 2 * 11008), (11008, 4096)]
    products = sum(rows * a * b for a, b in sizes)
    casts = sum(rows * a + a * b + rows * b for a, b in sizes) if width == 2 else 0
    assert summed.unfused_bytes - usual.unfused_bytes == 8 * products + 8 * casts
    assert (summed.compulsory_bytes, summed.flops) == (usual.compulsory_bytes, usual.flops)
    matmul = [bytes_by_class(workload, given | {"product": product}, dtype)["matmul"] for product in ("matmul", "sum")]
    assert matmul[0] == matmul[1]


def test_a_generation_costs_what_its_parts_do_and_8_bits_come_on_top():
    workload, rows = get("llama-tiny", "generate"), 2
    given = {"batch_size": rows, "prompt": 12, "tokens": 5}
    of_layers = workload.model.layers * sum(a * b for a, b in workload.model.products)
    head = workload.model.hidden * workload.model.vocabulary
    for quant in ("none", "int8"):
        usual, summed = (
            workload.cost(given | {"quant": quant, "product": product}, "fp32") for product in ("matmul", "sum")
        )
        assert summed.unfused_bytes - usual.unfused_bytes == 8 * rows * (5 * head + 4 * of_layers)


def test_how_products_are_written_is_no_other_reference():
    for pass_name in ("prefill", "decode", "generate"):
        workload = get("llama-tiny", pass_name)
        assert {"product", "quant"} <= {parameter.name for parameter in workload.parameters}
        told = workload.reference_parameters({"batch_size": 2, "quant": "int8", "product": "sum"})
        assert told == {"batch_size": 2, "quant": "int8"}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", NAMES)
def test_every_framework_sums_what_the_reference_multiplies(name, tmp_path):
    """In eager mode, with so many matrix products less, the first graph and one of a whole generation."""
    description = frameworks.describe(name)
    every = modes_of(description)
    modes = every[:2] + [mode for mode in every[2:] if mode in generating.WHOLE]
    environment = os.environ | description.environment(1, "cpu")
    environment |= dict.fromkeys(description.cache_variables, str(tmp_path))
    command = [str(interpreter(name)), "tests/doubles/summing.py", name, ",".join(modes)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = {}
    for row in json.loads(done.stdout.splitlines()[-1]):
        *fields, mode = row["place"]
        rows[summing.Place(*fields), mode] = row
    assert {mode for _, mode in rows} == set(modes)
    for (place, mode), row in rows.items():
        what = f"{place} {mode} {row}"
        if reason := refusal(name, place, mode):
            assert reason in (row["refused"] or ""), what
            continue
        assert row["refused"] is None and row["agrees"], what
        if mode != modes[0]:
            assert row["program"] == "same" and row["whole"] and not row["compiled_again"], what
        elif place.pass_name == "decode":
            assert row["misplaced"] == {"logits": False, "keys": False}, what
    for place, usual in summing.USUAL.items():
        matmuls, usually = (rows[of, modes[0]]["matmuls"] for of in (place, usual))
        assert usually - matmuls == LESS[place.pass_name], place
    stored = rows[replace(summing.DECODE, quant="int8"), modes[0]]
    assert stored["matmuls"] == rows[summing.DECODE, modes[0]]["matmuls"], "the form is of stored numbers as well"


# One product of a row by itself, in bfloat16, by (form of the matrix, how the framework makes and reads arrays).
ALONE = {
    "jax": """
import jax.numpy as jnp
from frameworks.jax.models.matrices import product
got = product(jnp.asarray(row, jnp.bfloat16), jnp.asarray(matrix, jnp.bfloat16), "sum").astype(jnp.float32)
""",
    "torch": """
import torch
from frameworks.torch.models.matrices import product
held = (torch.tensor(array).bfloat16() for array in (row, matrix))
got = product(*held, "sum").float().numpy()
""",
    "tensorflow": """
import tensorflow as tf
from frameworks.tensorflow.models.matrices import product
held = (tf.cast(tf.constant(array), tf.bfloat16) for array in (row, matrix.T))
got = tf.cast(product(*held, "sum"), tf.float32).numpy()
""",
}


@pytest.mark.parametrize("name", ALONE)
def test_a_sum_is_rounded_to_bfloat16_once(name):
    """Where terms of both signs nearly cancel, what rounding each of them leaves is far more than rounding the sum."""
    begin = """
import numpy as np
from workloads.rounding import stored
rng = np.random.default_rng(0)
row, matrix = (stored(rng.standard_normal(shape, np.float32), "bf16") for shape in ((1, 4096), (256, 4096)))
exact = row.astype(np.float64) @ matrix.astype(np.float64).T
"""
    end = """
beyond = np.abs(np.asarray(got, np.float64) - exact) - 2.0**-8 * np.abs(exact)
assert beyond.max() < 0.01, beyond.max()
"""
    run_in(name, begin, ALONE[name], end)
