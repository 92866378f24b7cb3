"""Parity of two outputs: errors relative to the reference's scale, and the share of the error that repeats."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from itertools import pairwise

import numpy as np

from measurement.flags import CONSTANT, ZERO

# In units of the tolerance on the root mean square: the largest error of a single value, and the repeated part.
LARGEST, REPEATED = 20.0, 0.25
# The common part of two calls' errors counts beyond this many standard errors.
STANDARD_ERRORS = 3.0
# If eager mode itself exceeds the tolerance, graphs may have this many times its error, as in PyTorch's check of
# compiled models (benchmarks/dynamo/common.py); this share of values that must agree exactly may then differ.
TIMES_EAGER, MOST_UNEQUAL = 3.0, 0.1
# Beyond this error eager mode proves nothing.
MOST_EAGER_ERROR = 0.25


@dataclass(frozen=True)
class Difference:
    """Error of outputs relative to a reference: the worst output's figures. All are infinite if none is comparable.

    `largest` is absolute. The others are relative to the root mean square of the output's reference. `relative` is the
    root mean square of the errors, and `relative_largest` the largest error. `repeated` is the part that two calls on
    different inputs have in common. Rounding differs from input to input; a bias that was dropped does not.

    `unequal` is the share of values that must agree exactly and do not: whole numbers, truth values, strings, and the
    places of NaN and of either infinity.
    """

    largest: float = 0.0
    relative: float = 0.0
    relative_largest: float = 0.0
    repeated: float = 0.0
    unequal: float = 0.0

    def within(self, tolerance: float, unequal: float = 0.0) -> bool:
        """Return whether the errors are within `tolerance`, which limits their root mean square.

        Of the values that must agree exactly, the share `unequal` may differ.
        """
        return self.needed <= tolerance and self.unequal <= unequal

    @property
    def needed(self) -> float:
        """Return the smallest tolerance that the errors meet."""
        return max(self.relative, self.relative_largest / LARGEST, self.repeated / REPEATED)

    def worst(self, other: Difference) -> Difference:
        """Return the larger of each figure."""
        return Difference(*map(max, zip(astuple(self), astuple(other), strict=True)))


INCOMPARABLE = Difference(math.inf, math.inf, math.inf, math.inf, 1.0)


def difference(
    outputs: Mapping[str, np.ndarray],
    reference: Mapping[str, np.ndarray],
    alternative: Mapping[str, np.ndarray] | None = None,
) -> Difference:
    """Return the difference of outputs from the reference: the worst of `differences` over all outputs."""
    by_output = differences(outputs, reference, alternative)
    return functools.reduce(Difference.worst, by_output.values()) if by_output else INCOMPARABLE


def differences(
    outputs: Mapping[str, np.ndarray],
    reference: Mapping[str, np.ndarray],
    alternative: Mapping[str, np.ndarray] | None = None,
) -> dict[str, Difference]:
    """Return each output's difference from the reference's; keys are `<call>.<name>`, as workers save them, or names.

    Floating-point values are compared where both are finite. Whole numbers, truth values, strings and the positions of
    NaN and infinities must equal the reference's, or those of `alternative`, outputs with the same names. A missing
    output, or one of another size or kind, is `INCOMPARABLE`; all are if no value is finite.
    """
    compared: dict[str, list[_Compared]] = {}
    incomparable: set[str] = set()
    for key, expected in reference.items():
        name = key.partition(".")[2] or key
        calls = compared.setdefault(name, [])
        values = outputs.get(key)
        if values is None or values.shape != expected.shape:
            incomparable.add(name)
            continue
        if _kind(expected) == "float" and _kind(values) == "exact":
            values = values.astype(np.float64)
        if _kind(values) != _kind(expected):
            incomparable.add(name)
            continue
        other = (alternative or {}).get(key)
        if other is None or other.shape != expected.shape or _kind(other) != _kind(expected):
            other = expected
        compare = _floats if _kind(expected) == "float" else _exact
        calls.append(compare(values, expected, other))
    if not any(call.anything for calls in compared.values() for call in calls):
        incomparable = set(compared)
    return {name: INCOMPARABLE if name in incomparable else _of_one_output(calls) for name, calls in compared.items()}


def tolerance_needed(found: Mapping[str, Difference], tolerance_of: Callable[[str], float]) -> tuple[float, float]:
    """Return the smallest tolerance that the output nearest to its limit meets, and its own tolerance.

    The first is infinite if values differ that must agree exactly, and without outputs.
    """
    pairs = [(one.needed if one.unequal == 0 else math.inf, tolerance_of(name)) for name, one in found.items()]
    return max(pairs, key=lambda pair: pair[0] / pair[1], default=(math.inf, 1.0))


@dataclass(frozen=True)
class _Compared:
    """One output of one call: largest error and unequal share; for floats also errors and mean squares."""

    largest: float
    unequal: float
    anything: bool = True  # there was something to compare
    error: np.ndarray | None = None  # 0 where either is not finite
    error_square: float = 0.0  # means over the finite places: of the error, and of the reference
    square: float = 0.0


def _floats(values: np.ndarray, expected: np.ndarray, other: np.ndarray) -> _Compared:
    unlike = (_states(values) != _states(expected)) & (_states(values) != _states(other))
    finite = np.isfinite(values) & np.isfinite(expected)
    error = np.where(finite, values, 0.0).astype(np.float64) - np.where(finite, expected, 0.0)
    squares = _mean_square(error[finite]), _mean_square(expected[finite].astype(np.float64))
    anything = bool(finite.any()) or not values.size
    return _Compared(float(np.max(np.abs(error), initial=0.0)), _share(unlike), anything, error, *squares)


def _exact(values: np.ndarray, expected: np.ndarray, other: np.ndarray) -> _Compared:
    unlike = (values != expected) & (values != other)
    numbers = _kind(values) == "exact" and bool(unlike.any())
    apart = values[unlike].astype(np.float64) - expected[unlike].astype(np.float64) if numbers else np.zeros(0)
    return _Compared(float(np.max(np.abs(apart), initial=0.0)), _share(unlike))


def _states(values: np.ndarray) -> np.ndarray:
    """Return 0 for a finite value, 1 for NaN, 2 and 3 for the infinities."""
    return np.select([np.isnan(values), np.isposinf(values), np.isneginf(values)], [1, 2, 3], 0)


def _share(unlike: np.ndarray) -> float:
    return float(np.mean(unlike)) if unlike.size else 0.0


def _kind(values: np.ndarray) -> str:
    return {"f": "float", "U": "text", "S": "text"}.get(values.dtype.kind, "exact")


def nearest_to_its_limit(
    pairs: Sequence[tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]], allowed: Callable[[str], float]
) -> tuple[Difference, float]:
    """Return the worst errors of all processes for the outputs nearest to their tolerance, and that tolerance.

    `pairs` are outputs and reference by `<call>.<name>`; `allowed` returns the tolerance of an output by its name.
    """
    tolerance = {key: allowed(key.partition(".")[2] or key) for _, reference in pairs for key in reference}
    errors = []
    for limit in set(tolerance.values()) or {allowed("")}:
        held = [(mine, {key: theirs[key] for key in theirs if tolerance[key] == limit}) for mine, theirs in pairs]
        errors.append((functools.reduce(Difference.worst, (difference(*pair) for pair in held)), limit))
    return max(errors, key=lambda one: (not one[0].within(one[1]), one[0].relative / (one[1] or 1.0)))


def _mean_square(values: np.ndarray) -> float:
    return float(np.mean(np.square(values))) if values.size else 0.0


def _of_one_output(calls: list[_Compared]) -> Difference:
    """Return the figures of one output over its calls."""
    largest, unequal = max(call.largest for call in calls), max(call.unequal for call in calls)
    errors = [call.error for call in calls if call.error is not None]
    if not errors:
        return Difference(largest, unequal=unequal)
    scale = math.sqrt(np.mean([call.square for call in calls])) or 1.0
    relative = math.sqrt(np.mean([call.error_square for call in calls])) / scale
    pairs = [(one, other) for one, other in pairwise(errors) if one.shape == other.shape]
    repeated = max((_common(one, other) for one, other in pairs), default=0.0) / scale
    return Difference(largest, relative, largest / scale, repeated, unequal)


def _common(one: np.ndarray, other: np.ndarray) -> float:
    """Return the common part of two calls' errors: the root of their mean product, less its size by chance."""
    products = (one * other).reshape(-1)
    if products.size < 2:
        return 0.0
    standard_error = float(products.std(ddof=1)) / math.sqrt(products.size)
    return math.sqrt(max(0.0, float(products.mean()) - STANDARD_ERRORS * standard_error))


def emptiness(outputs: Mapping[str, np.ndarray]) -> str | None:
    """Return the flag of outputs without information: every array is zero, or constant; else None.

    A classifier with zero weights in its last layer gives zeros, and a softmax over one class gives ones. A detector
    without detections gives no value, which counts as zeros. Arrays of a single value alone are not constant.
    """
    arrays = [values != "" if values.dtype.kind in "US" else values for values in outputs.values() if values.size]
    if outputs and not any(map(np.any, arrays)):
        return ZERO
    several = any(values.size > 1 for values in arrays)
    return CONSTANT if several and all((values == values.flat[0]).all() for values in arrays) else None


def are_numbers(outputs: Mapping[str, np.ndarray]) -> bool:
    """Return whether outputs can be a reference: there are some, and all are finite."""
    return bool(outputs) and all(np.isfinite(values).all() for values in outputs.values())
