"""Weights in 8 bits: what is stored is what the formula says, in every framework, and a product uses it."""

from __future__ import annotations

import json
import os
import subprocess

import numpy as np
import pytest
from conftest import ROOT
from doubles import eight_bits, generating
from doubles.environment import interpreter

import frameworks
from measurement.parity import difference
from workloads import get
from workloads.matrices import LARGEST, quantized, restored

pytestmark = pytest.mark.slow

NAMES = [name for name in frameworks.NAMES if "llama" in frameworks.describe(name).models.get("plain", ())]
# Every number of the 8-bit float from zero on: 8 steps below its smallest normal number, then 8 in each power of two.
GRID = np.array([0.0, *np.arange(1, 8) * 2.0**-9, *(2.0**e * (1 + m / 8) for e in range(-6, 9) for m in range(8))][:-1])


def rows(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((24, 40), np.float32) * np.float32(0.02)


@pytest.mark.parametrize("kind", LARGEST)
def test_stored_numbers_are_the_nearest_that_the_format_has(kind):
    grid = np.arange(128.0) if kind == "int8" else GRID
    assert grid[-1] == LARGEST[kind]
    grid = np.concatenate([-grid[:0:-1], grid])
    values, scales = quantized(rows(), kind)
    exact = rows() / scales
    assert np.isin(values, grid).all()
    nearest = np.abs(exact[..., None] - grid).min(-1)
    np.testing.assert_allclose(np.abs(values - exact), nearest, rtol=0, atol=1e-6 * LARGEST[kind])
    assert (np.abs(values).max(1) >= LARGEST[kind] * (1 - 2**-4)).all()  # the whole range is used


def test_scales_are_exact_in_bfloat16_and_rows_of_zeros_stay():
    weight = rows()
    weight[3] = 0
    values, scales = quantized(weight, "int8")
    assert (scales.view(np.uint32) & 0xFFFF == 0).all() and scales.shape == (24, 1)
    assert (values[3] == 0).all() and np.isfinite(values).all()
    error = restored(weight, "int8") - weight
    assert 0 < np.abs(error).max() <= np.abs(weight).max() / 127 * 0.51


def test_eight_bits_halve_what_must_be_read():
    for name, head in (("llama-7b", True), ("llama-1b", False)):
        decode = get(name, "decode")
        given = {"batch_size": 1, "context": 1024, "cache": "static"}
        plain, small = (decode.cost(given | {"quant": quant}, "bf16") for quant in ("none", "int8"))
        matrices = decode.model.layers * sum(a * b for a, b in decode.model.products)
        matrices += head * decode.model.hidden * decode.model.vocabulary
        rows = decode.model.layers * sum(b for _, b in decode.model.products) + head * decode.model.vocabulary
        assert plain.compulsory_bytes - small.compulsory_bytes == matrices - 2 * rows
        assert small.unfused_bytes - plain.unfused_bytes == 3 * matrices + 2 * 3 * rows
        assert small.flops - plain.flops == rows


@pytest.mark.parametrize("kind", LARGEST)
def test_a_framework_that_stored_other_numbers_would_be_a_mismatch(kind):
    """What quantization changes is far more than what parity allows."""
    place = generating.Place("llama-tiny", "static", "decode", 64)
    decode, given, weights = place.workload, place.parameters, place.weights
    sets = decode.sets(given, 0)
    outputs = (decode.references(given | {"quant": quant}, weights, sets)[0] for quant in ("none", kind))
    whole, small = ({f"0.{name}": value.reshape(-1) for name, value in arrays.items()} for arrays in outputs)
    assert not difference(whole, small).within(100 * decode.tolerance["fp32"])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", NAMES)
def test_every_framework_computes_with_what_is_stored(name):
    """In all passes, generations of 128 tokens among them, in eager mode and the first graph, like the oracle."""
    description = frameworks.describe(name)
    modes = [description.baseline.name, description.default_graph[0]]
    command = [str(interpreter(name)), "tests/doubles/eight_bits.py", name, ",".join(modes)]
    environment = os.environ | description.environment(1, "cpu")
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["stored"] == dict.fromkeys(LARGEST, True)
    assert len(told["rows"]) == len(eight_bits.places()) * len(modes)
    for row in told["rows"]:
        what = str(row)
        assert row["refused"] is None and row["agrees"], what
        if row["place"][-1] != modes[0]:
            assert row["program"] == "same" and row["whole"] and not row["compiled_again"], what
        elif "decode" in row["place"]:
            assert row["misplaced"] == {"logits": False, "keys": False}, what
