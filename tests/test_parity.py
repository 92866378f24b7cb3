"""Two outputs are the same computation, or they are not: nothing in between passes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from measurement.parity import largest_error

REFERENCE = {"a": np.array([1.0, 2.0], np.float32), "b": np.array([[3.0]], np.float32)}


def test_the_largest_error_is_over_all_outputs():
    outputs = {"a": np.array([1.0, 1.5]), "b": np.array([[3.25]])}
    assert largest_error(REFERENCE, REFERENCE) == 0.0
    assert largest_error(outputs, REFERENCE) == 0.5
    assert largest_error({**outputs, "a": REFERENCE["a"]}, REFERENCE) == 0.25


@pytest.mark.parametrize(
    "outputs",
    [
        {},
        {"a": REFERENCE["a"]},
        {**REFERENCE, "a": np.array([1.0])},  # NumPy would broadcast it
        {**REFERENCE, "b": np.array([3.0])},
        {**REFERENCE, "a": np.array([1.0, math.nan])},
        {**REFERENCE, "a": np.array([1.0, math.inf])},
    ],
    ids=["none", "one missing", "shorter", "another shape", "NaN", "infinite"],
)
def test_what_cannot_be_compared_is_infinitely_far(outputs):
    assert largest_error(outputs, REFERENCE) == math.inf


def test_outputs_that_are_nan_do_not_agree_with_themselves():
    """The first framework's outputs may be the reference."""
    broken = {"a": np.array([math.nan, 1.0])}
    assert largest_error(broken, broken) == math.inf


def test_no_outputs_at_all_agree_with_nothing():
    assert largest_error({}, {}) == math.inf


def test_differences_are_taken_in_double_precision():
    big = np.array([2.0**24], np.float32)
    assert largest_error({"a": np.array([2**24 + 1], np.int64)}, {"a": big}) == 1.0
