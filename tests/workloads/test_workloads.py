"""Workloads: the oracle against the same mathematics written otherwise, costs against counting, inputs and weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
from doubles.float64 import INDEPENDENT
from doubles.small import SMALL, workload
from pytest import approx

import workloads
from workloads.reference import erf, gelu, layer_norm, softmax
from workloads.spec import SAMPLED_VALUES, Parameter, sampled


def wide_weights(shapes: dict, seed: int = 0) -> dict[str, np.ndarray]:
    """Weights of order 1/2: small ones make attention so even that a wrong scale would hardly show."""
    rng = np.random.default_rng(seed)
    weights = {name: rng.standard_normal(shape, dtype=np.float32) * np.float32(0.5) for name, shape in shapes.items()}
    return {name: np.abs(w) + np.float32(0.5) if name.endswith("running_var") else w for name, w in weights.items()}


def test_every_workload_is_checked_here():
    own = [name for name in workloads.names() if workloads.source_of(name) is None]  # others were added by other tests
    assert {workloads.get(name).family for name in own} == set(INDEPENDENT)


@pytest.mark.parametrize("name", SMALL)
def test_the_oracle_agrees_with_independent_float64(name, small_bert):
    model, parameters = workload(name, small_bert), SMALL[name]
    weights, inputs = wide_weights(model.weight_shapes(parameters)), model.inputs(parameters, 1)
    got = model.reference(parameters, weights, inputs)
    wide = {key: value.astype(np.float64) for key, value in weights.items()}
    expected = INDEPENDENT[model.family](model, parameters, wide, inputs)
    assert list(got) == list(expected)
    for key, value in expected.items():
        assert got[key].dtype == np.float32
        assert got[key].shape == value.shape
        assert np.abs(got[key] - value).max() < 1e-5


@pytest.mark.parametrize("name", SMALL)
def test_every_weight_counts(name, small_bert):
    """A weight that the oracle does not use could be wrong in every framework."""
    model, parameters = workload(name, small_bert), SMALL[name]
    weights, inputs = wide_weights(model.weight_shapes(parameters)), model.inputs(parameters, 1)
    before = model.reference(parameters, weights, inputs)
    for key, value in weights.items():
        # Not all by the same amount: softmax and layer norm forgive that.
        changed = {**weights, key: value * np.linspace(0.5, 2.0, value.size, dtype=np.float32).reshape(value.shape)}
        after = model.reference(parameters, changed, inputs)
        if key.endswith("key.bias"):  # adds the same to all scores of a query, which softmax forgives whatever it is
            continue
        assert max(np.abs(after[o] - before[o]).max() for o in before) > 2e-5, key  # rounding is 1e-6


def test_erf_and_gelu():
    points = np.concatenate([np.linspace(-8, 8, 4001), [1e-9, -1e-9, 0.0, 5.99999, 6.0, 30.0, -30.0]])
    exact = np.array([math.erf(x) for x in points])
    assert np.abs(erf(points) - exact).max() < 1.3e-9
    assert np.array_equal(erf(-points), -erf(points))
    single = points.astype(np.float32)
    assert gelu(single).dtype == np.float32
    assert np.abs(gelu(single) - single * (1 + np.array([math.erf(x / math.sqrt(2)) for x in single])) / 2).max() < 4e-6


def test_softmax_and_layer_norm_stand_large_values():
    assert softmax(np.array([[1e4, 1e4, -1e4]], np.float32)).tolist() == [[0.5, 0.5, 0.0]]
    x = np.array([[1e4, 1e4 + 1, 1e4 + 2]], np.float32)  # float32 sums of squares would lose the ones
    assert layer_norm(x, np.float32(1), np.float32(0), 0.0)[0] == approx([-math.sqrt(1.5), 0.0, math.sqrt(1.5)])


def test_bert_base_has_its_published_size():
    shapes = workloads.get("bert-base").weight_shapes({})
    assert sum(math.prod(shape) for shape in shapes.values()) == 109_482_240


@pytest.mark.parametrize("name", SMALL)
def test_weights_and_inputs_are_the_seed_s(name, small_bert):
    model, parameters = workload(name, small_bert), SMALL[name]
    first, same, other = (model.inputs(parameters, seed) for seed in (1, 1, 2))
    assert all(np.array_equal(first[key], same[key]) for key in first)
    assert all(not np.array_equal(first[key], other[key]) for key in first)
    weights, again = model.seeded_weights(parameters, 3), model.seeded_weights(parameters, 3)
    shapes = {key: value.shape for key, value in weights.items()}
    assert shapes == model.weight_shapes(parameters)
    assert all(np.array_equal(weights[key], again[key]) for key in weights)
    assert {value.dtype for value in weights.values()} <= {np.dtype(np.float32)}  # the cosines have none


def test_no_weight_of_bert_or_the_mlp_is_all_ones_or_zeros(small_bert):
    for model, name in ((small_bert, "bert-tiny"), (workloads.get("mlp"), "mlp")):
        for key, value in model.seeded_weights(SMALL[name], 0).items():
            assert value.std() > 1e-3, key
        assert not all(
            np.array_equal(a, b)
            for a, b in zip(
                model.seeded_weights(SMALL[name], 0).values(),
                model.seeded_weights(SMALL[name], 1).values(),
                strict=True,
            )
        )


def test_token_ids_avoid_the_padding_token_and_reach_both_ends(small_bert):
    ids = small_bert.inputs({**SMALL["bert-tiny"], "batch_size": 64, "seq_len": 16}, 0)["input_ids"]
    assert (ids.min(), ids.max()) == (1, small_bert.vocabulary - 1)
    assert ids.dtype == np.int64


def test_a_full_mask_is_all_ones_and_changes_nothing_else(small_bert):
    inputs = small_bert.inputs({**SMALL["bert-tiny"], "mask": "full"}, 1)
    assert list(inputs) == ["input_ids", "attention_mask"]
    assert (inputs["attention_mask"] == 1).all()
    assert np.array_equal(inputs["input_ids"], small_bert.inputs(SMALL["bert-tiny"], 1)["input_ids"])


@pytest.mark.parametrize(
    ("stored", "canonical"),
    [
        ("embeddings.LayerNorm.weight", "embeddings.LayerNorm.weight"),
        ("bert.embeddings.LayerNorm.gamma", "embeddings.LayerNorm.weight"),
        ("bert.encoder.layer.3.output.LayerNorm.beta", "encoder.layer.3.output.LayerNorm.bias"),
        ("encoder.layer.0.bert.weight", "encoder.layer.0.bert.weight"),
    ],
)
def test_canonical_names(stored, canonical):
    assert workloads.get("bert-base").canonical_name(stored) == canonical


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (2, None),
        (9, None),
        (1, "size must be at least 2, not 1."),
        (10, "size can be at most 9, not 10."),
        ("x", "size must be a whole number, not 'x'."),
    ],
)
def test_a_number_s_bounds(value, problem):
    assert Parameter("size", "size", 3, "", minimum=2, maximum=9).problem(value) == problem


def test_a_word_s_choices():
    parameter = Parameter("mask", "mask", "none", "", choices=("none", "full"))
    assert parameter.problem("full") is None
    assert parameter.problem("half") == "mask must be one of none, full, not 'half'."


@pytest.mark.parametrize("name", workloads.names())
def test_defaults_are_within_their_own_bounds(name):
    assert all(parameter.problem(parameter.default) is None for parameter in workloads.get(name).parameters)


def test_bert_takes_no_more_than_its_positions():
    (length,) = (parameter for parameter in workloads.get("bert-base").parameters if parameter.name == "seq_len")
    assert length.problem(512) is None
    assert length.problem(513)


def test_small_outputs_are_compared_whole():
    values = np.arange(24.0).reshape(2, 3, 4)
    assert sampled(values).tolist() == list(range(24))
    assert sampled(values).dtype == np.float32


@pytest.mark.parametrize("shape", [(2, 512, 512), (64, 512, 48), (8, 128, 768), (513, 1024), (3, 700, 129)], ids=str)
def test_samples_of_a_large_output_cover_every_axis(shape):
    """Every item, every position and every feature is compared at least once, none twice, and evenly."""
    places = np.arange(math.prod(shape)).reshape(shape)
    chosen = sampled(places).astype(np.int64)  # whole below 2**24
    assert chosen.size == SAMPLED_VALUES == np.unique(chosen).size
    assert np.array_equal(chosen, sampled(places.copy()))
    for axis, coordinate in enumerate(np.unravel_index(chosen, shape)):
        counts = np.bincount(coordinate, minlength=shape[axis])
        assert counts.min() > 0.8 * SAMPLED_VALUES / shape[axis]
        assert counts.max() < 1.25 * SAMPLED_VALUES / shape[axis]
