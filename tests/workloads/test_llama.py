"""Llamas: their published sizes, decode against prefill, weights from a pool, and costs against counting."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from doubles.small import workload
from pytest import approx

import workloads
from measurement.cells import Cell
from plan.plan import known_obstacle
from workloads import drawn
from workloads.decode import PAST, STEPS, decode_of
from workloads.rounding import stored

PARAMETERS = {"batch_size": 2, "context": 9, "attention": "explicit"}


@pytest.fixture
def small() -> workloads.llama.Llama:
    return workload("llama-tiny", None)


SIZES = {"llama-1b": 1_235_814_400, "llama-7b": 6_738_415_616, "llama-8b": 8_030_261_248, "qwen3-0.6b": 596_049_920}


@pytest.mark.parametrize(("name", "count"), SIZES.items())
def test_a_llama_has_its_published_size(name, count):
    assert sum(math.prod(shape) for shape in workloads.get(name, "prefill").weight_shapes({}).values()) == count


def added_one_after_the_other(terms: int) -> float:
    """How far float32 sums of so many products are off, relative to the sums, when each step is rounded."""
    rng = np.random.default_rng(0)
    left, right = (rng.standard_normal((200, terms), np.float32) for _ in range(2))
    exact = (left.astype(np.float64) * right).sum(1)
    summed = np.add.accumulate(left * right, axis=1, dtype=np.float32)[:, -1]
    return math.sqrt(np.square(summed - exact).mean() / np.square(exact).mean())


def test_float32_is_allowed_what_long_sums_round():
    """Such sums are off by the root of their number: so the tolerance of wide models is larger, in float32 alone."""
    wide = added_one_after_the_other(8192)
    assert added_one_after_the_other(512) < wide / 2
    allowed, narrow = (workloads.get(name, "decode").tolerance for name in ("llama-1b", "llama-tiny"))
    assert allowed["fp32"] == approx(math.sqrt(8192 / 3072 * 16 / 2) * narrow["fp32"])
    assert allowed["bf16"] == approx(math.sqrt(16 / 2) * narrow["bf16"])
    assert 9.5e-6 < allowed["fp32"] < 1.5e-5  # XLA's error on a CPU, and well below what a fault makes


@pytest.mark.parametrize(("framework", "says"), [("torch", None), ("paddle", None), ("jax", "("), ("tensorflow", "(")])
def test_the_library_s_llama_is_measured_in_torch_and_paddle_and_refused_elsewhere_with_a_reason(framework, says):
    for pass_name in ("prefill", "decode", "generate"):
        got = known_obstacle(Cell(framework, "llama-tiny", "library", pass_name, "cpu", "fp32", 1, (), "eager"))
        assert (got is None) if says is None else f"has no library implementation of llama-tiny {says}" in got


def test_wavelengths_are_stretched_beyond_the_original_context_alone():
    """At both ends of the mixture, where Llama 3.1's formula has one answer."""
    scaling = workloads.get("llama-1b").scaling
    short, long = 2 * math.pi * 4 / 8192, 2 * math.pi / 8192  # four turns over the original context, and one
    got = scaling.scaled(np.array([2 * short, short, long, long / 2]))
    assert got == approx([2 * short, short, long / 32, long / 64])


def test_decode_goes_on_where_a_prompt_ends(small):
    """The cache of a prompt as the past: each token's logits are those of the prompt with it."""
    rng = np.random.default_rng(0)
    weights = {n: rng.standard_normal(s) * 0.5 for n, s in small.weight_shapes({}).items()}
    ids = rng.integers(0, small.vocabulary, (1, PARAMETERS["context"]))

    def prompt(length: int) -> dict:
        return small.reference({"prompt": length}, weights, {"input_ids": ids[:, :length]})

    whole = prompt(PARAMETERS["context"])
    assert whole["keys"].shape[3] == 8  # of nine places; the past ends before those that are decoded
    first = PARAMETERS["context"] - STEPS
    before = prompt(first)
    past = {
        name: np.concatenate([before[kind][:, 0], np.full_like(whole[kind][:, 0, :, :STEPS], np.nan)], 2)
        for name, kind in zip(PAST, ("keys", "values"), strict=True)
    }
    sets = [{"tokens": ids[:, first + i], "place": np.array([first + i])} for i in range(STEPS)]
    decoded = decode_of(small).references(PARAMETERS, weights | past, sets)
    for index, outputs in enumerate(decoded):
        expected = prompt(first + index + 1)
        assert outputs["logits"] == approx(expected["logits"], abs=1e-9)
        assert outputs["keys"] == approx(expected["keys"][:, :, :, -2:], abs=1e-9)
        assert outputs["values"] == approx(expected["values"][:, :, :, -2:], abs=1e-9)


def test_calls_are_of_consecutive_tokens_at_the_cache_s_end(small):
    decode = decode_of(small)
    sets = decode.sets(PARAMETERS, 0)
    assert [int(arrays["place"][0]) for arrays in sets] == [5, 6, 7, 8]
    assert all(arrays["tokens"].shape == (2,) for arrays in sets)
    assert not np.array_equal(sets[0]["tokens"], sets[1]["tokens"])
    (context,) = (parameter for parameter in decode.parameters if parameter.name == "context")
    assert context.problem(4) == "context must be at least 5, not 4."


def test_weights_of_a_pool_repeat_its_numbers_in_no_row(monkeypatch):
    monkeypatch.setattr(drawn, "LARGEST", 31)
    shapes = {"a": (5, 4), "b": (4, 6), "c": (16, 2)}
    numbers = drawn.pool(shapes, np.random.default_rng(0))
    weights = drawn.Drawn({drawn.POOL: numbers, "norm": np.ones(3)}, {**shapes, "norm": (3,)}, {"c": 6})
    assert {name: value.shape for name, value in weights.items()} == {**shapes, "norm": (3,)}
    flat = np.concatenate([weights["a"].ravel(), weights["b"].ravel(), weights["c"].ravel() / 64])
    assert flat == approx(np.resize(numbers, 76), abs=0)
    rows = [tuple(row) for name in shapes for row in weights[name]]
    assert len(set(rows)) == len(rows)


def test_a_pool_rounds_as_its_weights_do(small):
    """The oracle rounds the pool, frameworks what is made of it."""
    decode = decode_of(small)
    kept = decode.kept_weights(PARAMETERS, 0)
    made = decode.weights_from(PARAMETERS, kept)
    rounded = decode.weights_from(PARAMETERS, {name: stored(value, "bf16") for name, value in kept.items()})
    assert set(made) == set(decode.weight_shapes(PARAMETERS))
    for name, value in made.items():
        assert np.array_equal(stored(value, "bf16"), rounded[name]), name


def test_every_weight_and_the_whole_cache_count_in_decode(small):
    decode, rng = decode_of(small), np.random.default_rng(0)
    weights = {n: rng.standard_normal(s, dtype=np.float32) * 0.5 for n, s in decode.weight_shapes(PARAMETERS).items()}
    inputs = decode.inputs(PARAMETERS, 1)
    before = decode.reference(PARAMETERS, weights, inputs)["logits"]
    for name, value in weights.items():
        used = value[:, :, :-STEPS] if name in PAST else value
        for part in np.array_split(np.arange(used.size), 3 if name in PAST else 1):
            scaled = used.copy()
            scaled.reshape(-1)[part] *= np.linspace(0.5, 2.0, part.size, dtype=value.dtype)
            changed = np.concatenate([scaled, value[:, :, -STEPS:]], 2) if name in PAST else scaled
            after = decode.reference(PARAMETERS, weights | {name: changed}, inputs)["logits"]
            assert np.abs(after - before).max() > 2e-5, name


@pytest.mark.parametrize("name", ["llama-1b", "llama-7b"])
def test_a_token_moves_every_weight_once_and_the_cache(name):
    """By hand: matrices, norms, keys and values of 1024 places, and what is written."""
    decode = workloads.get(name, "decode")
    model = decode.model
    cost = decode.cost({"batch_size": 8, "context": 1024}, "bf16")
    weights = sum(math.prod(shape) for shape in model.weight_shapes({}).values())
    if not model.tied:
        weights -= (model.vocabulary - 8) * model.hidden
    cache = 8 * model.layers * 2 * model.kv_heads * model.head_size
    assert cost.compulsory_bytes == 2 * (weights + cache * 1024 + cache + 8 * model.vocabulary) + 8 * 8
    products = sum(math.prod(s) for n, s in model.weight_shapes({}).items() if len(s) == 2)
    products -= 0 if model.tied else model.vocabulary * model.hidden
    (matmul,) = (o.flops for o in cost.operators if o.operator_class == "matmul")
    (attention,) = (o.flops for o in cost.operators if o.operator_class == "attention")
    assert matmul == 2 * 8 * products
    assert attention == 2 * 2 * 8 * model.layers * model.heads * model.head_size * 1024


def test_a_prompt_costs_as_many_products_as_it_has_tokens():
    model = dataclasses.replace(workloads.get("llama-tiny"), vocabulary=0, tied=True)
    one, many = (
        {o.operator_class: o.flops for o in model.cost({"batch_size": 1, "prompt": n}, "fp32").operators}
        for n in (1, 10)
    )
    assert many["matmul"] == 10 * one["matmul"]
    assert many["attention"] == 100 * one["attention"]
    fused = {o.operator_class: o.flops for o in model.cost({"batch_size": 1, "prompt": 10}, "fp32", True).operators}
    assert fused["attention"] == 55 * one["attention"]
