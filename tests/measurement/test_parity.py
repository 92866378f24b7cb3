"""Two outputs are the same computation, or they are not: rounding passes, other mathematics does not."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pytest import approx

import workloads
import workloads.bert as bert
import workloads.reference as reference
from measurement.parity import INCOMPARABLE, Difference, are_numbers, by_output, difference, emptiness, limit
from workloads.rounding import stored

REFERENCE = {"a": np.array([1.0, 2.0], np.float32), "b": np.array([[3.0]], np.float32)}


def test_the_worst_output_counts():
    outputs = {"a": np.array([1.0, 1.5]), "b": np.array([[3.25]])}
    assert difference(REFERENCE, REFERENCE).largest == 0.0
    assert difference(outputs, REFERENCE).largest == 0.5
    assert difference({**outputs, "a": REFERENCE["a"]}, REFERENCE).largest == 0.25


def test_the_limit_grows_with_eager_mode_s_error_without_a_jump():
    limits = [limit(Difference(relative=error), 0.06, "") for error in (0.0, 0.02, 0.059, 0.061)]
    assert [one.tolerance for one in limits] == approx([0.06, 0.06, 0.177, 0.183])
    assert [one.eager for one in limits] == approx([0, 0, 0, 0.061 / 0.06])


def test_an_output_that_is_missing_in_eager_mode_as_well_is_wrong():
    found = by_output({}, REFERENCE, {"a": REFERENCE["a"]}, lambda name: 1e-3, "fp32")
    assert not found["a"].holds and not found["b"].holds


def test_errors_are_relative_to_the_reference_s_scale():
    """Half of a thousandth is little beside a thousand, and much beside a hundredth."""
    for scale in (1e-2, 1e3):
        expected = {"0.a": np.full(4, scale)}
        errors = difference({"0.a": expected["0.a"] * 1.001}, expected)
        assert errors.relative == pytest.approx(1e-3)
        assert errors.relative_largest == pytest.approx(1e-3)
        assert errors.within(2e-3) and not errors.within(0.9e-3)


def test_the_scale_is_that_of_an_output_over_its_calls():
    """A call whose values happen to be small is no reason for a mismatch; another output's scale is none to pass."""
    expected = {"0.a": np.array([1.0]), "1.a": np.array([1e-6]), "0.b": np.array([1e6]), "1.b": np.array([1e6])}
    errors = difference({**expected, "1.a": np.array([2e-6])}, expected)
    assert errors.relative == pytest.approx(1e-6, rel=0.01)


@pytest.mark.parametrize(
    "outputs",
    [
        {},
        {"a": REFERENCE["a"]},
        {**REFERENCE, "a": np.array([1.0])},  # NumPy would broadcast it
        {**REFERENCE, "b": np.array([3.0])},
    ],
    ids=["none", "one missing", "shorter", "another shape"],
)
def test_what_cannot_be_compared_is_infinitely_far(outputs):
    assert difference(outputs, REFERENCE) == INCOMPARABLE
    assert not INCOMPARABLE.within(1e9)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_places_without_a_number_must_be_the_same(value):
    broken, error = {**REFERENCE, "a": np.array([1.0, value])}, {"a": np.array([1.5, value])}
    assert not difference(broken, REFERENCE).within(1e9) and not difference(REFERENCE, broken).within(1e9)
    assert difference(broken, broken).within(0.0)
    assert difference(broken, REFERENCE).unequal == difference(REFERENCE, broken).unequal == 0.5
    assert difference(error, broken | {"b": REFERENCE["b"]}) == INCOMPARABLE  # without "b"
    assert difference({**broken, **error}, broken).relative == pytest.approx(0.5, rel=1e-6)
    assert not difference({"a": np.array([1.0, -value])}, {"a": np.array([1.0, value])}).within(1e9) or value != value


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (np.array([2**62 + 1, 5]), np.array([2**62, 5])),
        (np.array([True, False]), np.array([True, True])),
        (np.array(["a", "b"]), np.array(["a", "c"])),
    ],
)
def test_what_has_no_rounding_must_be_equal(values, expected):
    assert difference({"a": expected}, {"a": expected}).within(0.0)
    wrong = difference({"a": values}, {"a": expected})
    assert wrong.unequal == 0.5 and not wrong.within(1e9)
    assert wrong.within(1e-4, unequal=0.5)
    assert difference({"a": values}, {"a": expected}, {"a": values}).within(0.0)  # as eager mode has it
    assert difference({"a": np.array([1.0, 2.0])}, {"a": np.array([1, 2])}) == INCOMPARABLE


@pytest.mark.parametrize("mask", [-1e9, -1e4, -3.4e38, 1e6])
def test_errors_are_relative_to_the_values_without_a_mask(mask):
    logits = np.random.default_rng(0).standard_normal((16, 18))
    hidden = np.random.default_rng(1).random((16, 18)) < 0.3
    reference = {"0.y": np.where(hidden, mask + logits, logits)}
    eager = {"0.y": (reference["0.y"] * (1 + 1e-7)).astype(np.float32)}
    off = {"0.y": np.where(hidden, eager["0.y"], eager["0.y"] + 1)}
    assert difference(eager, reference, eager).within(1e-6)
    assert not difference(off, reference, eager).within(0.5)
    for wrong in (logits, np.where(hidden, 2 * mask, logits), np.where(hidden, -mask, logits)):
        assert difference({"0.y": wrong}, reference, eager).unequal == approx(hidden.mean())
    # A graph in float32 has that type's smallest number where the reference has that of float64.
    far = {"0.y": np.where(hidden, np.finfo(np.float64).min, logits)}
    near = {"0.y": np.where(hidden, np.finfo(np.float32).min, logits).astype(np.float32)}
    assert difference(near, far, near).within(1e-6)


def test_few_large_values_and_ones_beside_remainders_are_no_mask():
    reference = {"0.y": np.array([1e6] * 4 + [1.0, 2.0] * 20)}
    assert difference({"0.y": np.where(reference["0.y"] > 10, 0.99e6, reference["0.y"])}, reference).relative > 0.009
    identity = {"0.y": np.eye(8) + np.random.default_rng(0).standard_normal((8, 8)) * 1e-17}
    assert difference({"0.y": np.eye(8) + 6e-8}, identity).within(1e-6)


def test_what_is_no_number_is_no_reference():
    assert are_numbers(REFERENCE)
    for broken in ({}, {"a": np.array([math.nan, 1.0])}, {"a": np.array([math.inf])}):
        assert not are_numbers(broken)
    for empty in ({}, {"a": np.array([math.inf])}):  # no value to compare
        assert difference(empty, empty) == INCOMPARABLE


def test_outputs_that_are_zero_or_constant_throughout_are_empty():
    zeros, ones, one = np.zeros((2, 3), np.float32), np.ones((2, 3), np.float32), np.ones(1, np.float32)
    assert emptiness({"0.a": zeros, "1.a": -zeros}) == "zero_outputs"
    assert emptiness({"0.boxes": np.ones((0, 4)), "0.labels": np.ones(0, np.int64)}) == "zero_outputs"
    assert emptiness({"0.a": ones, "1.a": 2 * ones, "1.loss": one}) == "constant_outputs"
    statistics = {"0.loss": one, "0.mean": zeros, "1.loss": 2 * one, "1.mean": zeros}  # those of a frozen layer
    assert emptiness(statistics) is None
    for said in ({}, {"0.a": zeros, "0.b": np.r_[0.0, 1e-30]}, {"0.loss": one}, {"0.a": np.r_[0.5, 0.25], "0.b": ones}):
        assert emptiness(said) is None


def test_differences_are_taken_in_double_precision():
    big = np.array([2.0**24], np.float32)
    assert difference({"a": np.array([2**24 + 1], np.int64)}, {"a": big}).largest == 1.0


def test_one_wrong_value_among_many_is_seen():
    expected = {"0.a": np.ones(1 << 16)}
    errors = difference({"0.a": np.r_[np.ones((1 << 16) - 1), 2.0]}, expected)
    assert errors.relative < 1e-2
    assert not errors.within(1e-2)


def test_what_repeats_from_call_to_call_compares_from_rounding():
    """Two thousandths that every call is off, under rounding five times as large."""
    rng = np.random.default_rng(0)
    expected = {f"{call}.a": rng.standard_normal(1 << 16) for call in range(2)}
    shift = 2e-3 * rng.standard_normal(1 << 16)
    rounded = {key: value + 1e-2 * rng.standard_normal(value.size) for key, value in expected.items()}
    assert difference(rounded, expected).repeated < 5e-4
    shifted = difference({key: value + shift for key, value in rounded.items()}, expected)
    assert 1e-3 < shifted.repeated < 2.2e-3  # what chance may give is taken off
    assert shifted.relative == pytest.approx(1e-2, rel=0.02)


@pytest.mark.parametrize("different", [False, True])
def test_rounding_of_equal_inputs_repeats_and_is_no_other_mathematics(different):
    """Rounding to bf16 is a relative 0.0017 here, below a tolerance of 0.004, and above the quarter of it."""
    rng = np.random.default_rng(0)
    first = rng.standard_normal(1 << 12)
    expected = {"0.a": first, "1.a": first, "2.a": rng.standard_normal(1 << 12) if different else first}
    found = difference({key: stored(value.astype(np.float32), "bf16") for key, value in expected.items()}, expected)
    assert found.relative == pytest.approx(0.0017, rel=0.05)
    assert found.repeated < 2e-4 and found.within(0.004)
    biased = {key: value + 0.0017 for key, value in expected.items()}
    assert difference(biased, expected).repeated == pytest.approx(0.0017 * different, rel=0.1)


def test_rounding_is_to_the_nearest_and_half_to_even():
    known = ((1 + 2**-8, 1.0, 1 + 2**-8), (1 + 3 * 2**-8, 1 + 2**-6, 1 + 3 * 2**-8), (-2.7, -2.703125, -2.69921875))
    for value, bf16, fp16 in known:
        for dtype, expected in (
            ("bf16", bf16),
            ("fp16", fp16),
            ("fp32", np.float32(value)),
            ("tf32", np.float32(value)),
        ):
            assert stored(np.array([value], np.float32), dtype) == expected
    assert stored(np.array([7]), "bf16").dtype == np.int64  # token ids are no numbers to round


# BERT-tiny as a framework computes it, with every operator's result rounded to the dtype, and with planted differences.
TINY, PARAMETERS = workloads.get("bert-tiny"), {"batch_size": 1, "seq_len": 32, "mask": "none", "attention": "explicit"}
NORM, GELU = reference.layer_norm, reference.gelu


def tanh_gelu(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def with_epsilon(epsilon: float):
    return {"layer_norm": lambda x, weight, bias, _: NORM(x, weight, bias, epsilon)}


def _by_call(sets: list[dict]) -> dict:
    return {f"{call}.{name}": value for call, one in enumerate(sets) for name, value in one.items()}


def without(name: str):
    return {"dropped": name}


@pytest.fixture(scope="module")
def data():
    weights = TINY.seeded_weights(PARAMETERS, 0)
    inputs = [TINY.inputs(PARAMETERS, 1 + call) for call in range(TINY.parity_calls)]
    return weights, inputs


@pytest.fixture
def computed(data, monkeypatch):
    """How far the model is from the oracle in a dtype, with differences planted by the names of `workloads.bert`."""
    weights, inputs = data

    def outputs(dtype: str, **planted) -> dict:
        held = {name: stored(value, dtype) for name, value in weights.items()}
        expected = [TINY.reference(PARAMETERS, held, arrays) for arrays in inputs]
        if dropped := planted.pop("dropped", None):
            held[dropped] = np.zeros_like(held[dropped])
        with monkeypatch.context() as patch:
            for name in ("layer_norm", "gelu", "softmax", "linear"):
                own = planted.get(name, getattr(reference, name))
                where = reference if name == "softmax" else bert  # in attention, which other models share
                patch.setattr(where, name, lambda *given, own=own: stored(own(*given), dtype))
            outputs = [TINY.reference(PARAMETERS, held, arrays) for arrays in inputs]
        return difference(_by_call(outputs), _by_call(expected))

    return outputs


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
def test_rounding_alone_passes(computed, dtype):
    errors = computed(dtype)
    assert errors.within(TINY.tolerance[dtype])
    assert errors.relative > TINY.tolerance[dtype] / 50  # and it was rounded


BIASES = (
    "0.output.dense",
    "1.output.dense",
    "1.intermediate.dense",
    "0.attention.self.value",
    "0.attention.output.LayerNorm",
)


@pytest.mark.parametrize("dtype", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("bias", BIASES)
def test_a_dropped_bias_fails(computed, dtype, bias):
    """Biases are drawn with a standard deviation of 0.02."""
    assert not computed(dtype, **without(f"encoder.layer.{bias}.bias")).within(TINY.tolerance[dtype])


def test_a_wrong_epsilon_and_a_tanh_gelu_fail_where_rounding_does_not_hide_them(computed):
    """In bf16 the two below are a fortieth and a thousandth of the rounding: no statistic of two calls shows them."""
    for dtype in ("fp32", "fp16", "bf16"):
        assert not computed(dtype, **with_epsilon(1e-3)).within(TINY.tolerance[dtype])
    assert not computed("fp32", **with_epsilon(1e-5)).within(TINY.tolerance["fp32"])
    assert not computed("fp32", gelu=tanh_gelu).within(TINY.tolerance["fp32"])
    assert computed("bf16", gelu=tanh_gelu).within(TINY.tolerance["bf16"])
