"""Parity of two outputs: errors relative to the reference's scale, and the share of the error that repeats."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from measurement.flags import CONSTANT, ZERO

# In units of the tolerance on the root mean square: the largest error of a single value, and the repeated error.
LARGEST, REPEATED = 20.0, 0.25
# The error of a part relative to the part itself. Rounding is not the same in all parts: at this limit, errors in a
# sixteenth of the values use up the tolerance of all.
OF_A_PART = 4.0
# The common part of two calls' errors counts beyond this many standard errors.
STANDARD_ERRORS = 3.0
# If eager mode itself exceeds the tolerance, graphs may have this many times its error, as in PyTorch's check of
# compiled models (benchmarks/dynamo/common.py); this share of values that must agree exactly may then differ.
TIMES_EAGER, MOST_UNEQUAL = 3.0, 0.1
# Beyond this error eager mode proves nothing.
MOST_EAGER_ERROR = 0.25
# A part of an output may have `TIMES_EAGER` times eager mode's error in it, times 5 for chance: the root mean squares
# of two samples of 16 normal errors have a larger ratio with probability 2e-8 (F distribution), and one normal error
# exceeds 5 standard deviations with 6e-7. Fewer than 64 different errors may hold fewer than 16 independent ones.
TIMES_EAGER_OF_A_PART, DIFFERENT = 5 * TIMES_EAGER, 64
# Errors that a graph may have where eager mode has none, relative to an output: those of 2**16 values summed one by one
# in float32 (2**8 times 2**-24, a random walk), and of TF32's products (2**-10), which eager mode need not use.
SUMMED, MULTIPLIED = 2.0**-16, {"tf32": 2.0**-10}
# A mask's values, such as -1e9, exceed 1 and all others by this factor, and would hide their errors. They are alike to
# 1 %. Four values may be repeated extremes of a sample.
MASKED, ALIKE, FEW = 1000.0, 1.01, 4
# A fault of a part occurs in most calls and items, which form this many groups. A token sent to another expert by
# rounding occurs in few of them.
GROUPS = 8


class Part(NamedTuple):
    """Error of a part of an output, relative to the part's own root mean square, and the part's place."""

    error: float
    place: str


NO_PART = Part(0.0, "")


class Sample(NamedTuple):
    """An array's shape, and the places, in C order, of the values that are compared; others may follow these."""

    shape: Sequence[int]
    places: np.ndarray


@dataclass(frozen=True)
class Difference:
    """Error of outputs relative to a reference: the worst output's figures. All are infinite if none is comparable.

    `largest` is absolute. The others are relative to the root mean square of the output's reference. `relative` is the
    root mean square of the errors, and `relative_largest` the largest error. `repeated` is the part that two calls on
    different inputs have in common. Rounding differs from input to input; a bias that was dropped does not. Calls with
    equal references had equal inputs: their rounding repeats, so they show nothing.

    `unequal` is the share of values that must agree exactly and do not: whole numbers, truth values, strings, and the
    places of NaN, of either infinity and of a mask's values (`_limit`).

    `part` is the worst part of an output by itself, where eager mode's own error is known (`_worst_part`).
    """

    largest: float = 0.0
    relative: float = 0.0
    relative_largest: float = 0.0
    repeated: float = 0.0
    unequal: float = 0.0
    part: Part = NO_PART

    def within(self, tolerance: float, unequal: float = 0.0) -> bool:
        """Return whether the errors are within `tolerance`, which limits their root mean square.

        Of the values that must agree exactly, the share `unequal` may differ.
        """
        return self.needed <= tolerance and self.unequal <= unequal

    @property
    def needed(self) -> float:
        """Return the smallest tolerance that the errors meet."""
        found = (self.relative, self.relative_largest / LARGEST, self.repeated / REPEATED, self.part.error / OF_A_PART)
        return max(found)

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
    dtype: str = "",
    samples: Mapping[str, Sample] | None = None,
) -> dict[str, Difference]:
    """Return each output's difference from the reference's; keys are `<call>.<name>`, as workers save them, or names.

    Floating-point values are compared where both are finite. Whole numbers, truth values, strings and the positions of
    NaN and infinities must equal the reference's, or those of `alternative`: eager mode's outputs in the cell's
    `dtype`, with the same names. Its errors are the measure for those of parts (`_worst_part`). `samples` has the
    form of 1-D outputs by key. A missing output, or one of another size or kind, is `INCOMPARABLE`; all are if no value
    is finite.
    """
    by_name: dict[str, list[np.ndarray]] = {}
    for key, expected in reference.items():
        by_name.setdefault(key.partition(".")[2] or key, []).append(expected)
    limits = {
        name: _limit([each for each in all_calls if _kind(each) == "float"]) for name, all_calls in by_name.items()
    }
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
        if _kind(expected) == "float":
            calls.append(_floats(values, expected, other, (samples or {}).get(key), limits[name]))
        else:
            calls.append(_exact(values, expected, other))
    if not any(call.anything for calls in compared.values() for call in calls):
        incomparable = set(compared)
    least = MULTIPLIED.get(dtype, SUMMED)
    return {
        name: INCOMPARABLE if name in incomparable else _of_one_output(calls, least) for name, calls in compared.items()
    }


@dataclass(frozen=True)
class Parity:
    """Difference of outputs from the reference's, its relative limit, and the name of the reference.

    `first_differing` is the first step that generated a different token, None if no step did.
    """

    difference: Difference
    tolerance: float
    reference: str
    first_differing: int | None = None
    unequal: float = 0.0  # allowed share of differing values among those that must agree exactly
    eager: float = 0.0  # of a user model: eager mode's own error in units of the dtype's tolerance, if above 1

    @property
    def needed(self) -> float:
        """Return the smallest tolerance that the outputs meet; infinite if too many differ that must agree exactly."""
        return self.difference.needed if self.difference.unequal <= self.unequal else math.inf

    @property
    def holds(self) -> bool:
        return self.difference.within(self.tolerance, self.unequal)

    @classmethod
    def nearest(cls, parities: Iterable[Parity]) -> Parity:
        """Return the parity that is nearest to its limit, or beyond it; an incomparable one without any."""
        order = lambda one: (not one.holds, one.difference.needed / (one.tolerance or 1.0))  # noqa: E731
        return max(parities, key=order, default=cls(INCOMPARABLE, 0.0, ""))


def limit(own: Difference, tolerance: float, reference: str) -> Parity:
    """Return an output's limit as a parity, given eager mode's own error in the cell's dtype.

    It is the tolerance, or a multiple of that error where this is more.
    """
    unequal = min(TIMES_EAGER * own.unequal, MOST_UNEQUAL)
    if TIMES_EAGER * own.needed <= tolerance:
        return Parity(own, tolerance, reference, unequal=unequal)
    in_tolerances = own.needed / tolerance if tolerance else math.inf
    reference += f", up to {TIMES_EAGER:g} times eager mode's own error of {own.needed:.2g}"
    eager = in_tolerances if in_tolerances > 1 else 0.0
    return Parity(own, TIMES_EAGER * own.needed, reference, unequal=unequal, eager=eager)


def by_output(
    outputs: Mapping[str, np.ndarray],
    reference: Mapping[str, np.ndarray],
    eager: Mapping[str, np.ndarray] | None,
    tolerance_of: Callable[[str], float],
    dtype: str,
    name: str = "",
    samples: Mapping[str, Sample] | None = None,
) -> dict[str, Parity]:
    """Return the parity of each output with the reference of that name, given eager mode's outputs in the `dtype`.

    Their errors set the limits; None where they are not known. Keys and `samples` are as in `differences`.
    """
    own = differences(eager, reference) if eager else {}
    found = differences(outputs, reference, eager, dtype, samples)
    return {
        output: replace(limit(own.get(output, Difference()), tolerance_of(output), name), difference=error)
        for output, error in found.items()
    }


@dataclass(frozen=True)
class _Compared:
    """One output of one call: largest error and unequal share; for floats also errors and mean squares."""

    largest: float
    unequal: float
    anything: bool = True  # there was something to compare
    error: np.ndarray | None = None  # 0 where either is not finite, as is `right`
    right: np.ndarray | None = None  # the reference
    error_square: float = 0.0  # means over the finite places: of the error, and of the reference
    square: float = 0.0
    sample: Sample | None = None
    by_value: np.ndarray | None = None  # (3, values): the error, eager mode's if it has any, and the reference's values


def _floats(
    values: np.ndarray, expected: np.ndarray, other: np.ndarray, sample: Sample | None, limit: float
) -> _Compared:
    states, right_states, other_states = (_states(each, limit) for each in (values, expected, other))
    unlike = (states != right_states) & (states != other_states)
    unlike |= (np.abs(expected) >= limit) & _far(values, expected) & _far(values, other)
    finite = (states == 0) & (right_states == 0)
    right = np.where(finite, expected, 0.0).astype(np.float64)
    error = np.where(finite, values, 0.0) - right
    own = np.where(finite & (other_states == 0), other - right, 0.0)
    squares = _mean_square(error[finite]), _mean_square(right[finite])
    anything = bool(finite.any()) or not values.size
    sample = sample or Sample(expected.shape, np.arange(expected.size))
    by_value = np.stack([error, own, right]).reshape(3, -1)[:, : sample.places.size] if own.any() else None
    largest = float(np.max(np.abs(error), initial=0.0))
    return _Compared(largest, _share(unlike), anything, error, right, *squares, sample, by_value)


def _exact(values: np.ndarray, expected: np.ndarray, other: np.ndarray) -> _Compared:
    unlike = (values != expected) & (values != other)
    numbers = _kind(values) == "exact" and bool(unlike.any())
    apart = values[unlike].astype(np.float64) - expected[unlike].astype(np.float64) if numbers else np.zeros(0)
    return _Compared(float(np.max(np.abs(apart), initial=0.0)), _share(unlike))


def _limit(calls: Sequence[np.ndarray]) -> float:
    """Return the size from which values belong to a mask: between its own and all others; infinite without a mask.

    `calls` has one output of several calls, since a mask may leave nothing else of one call.
    """
    sizes = np.concatenate([np.zeros(0), *(np.abs(one[np.isfinite(one)]).astype(np.float64) for one in calls)])
    alike = sizes >= sizes.max(initial=0.0) / ALIKE
    rest, least = float(sizes.max(initial=0.0, where=~alike)), float(sizes.min(initial=math.inf, where=alike))
    many = alike.sum() > FEW * len(calls)
    return math.sqrt(MASKED) * rest if many and rest > 0 and MASKED * max(rest, 1.0) <= least else math.inf


def _far(values: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Return where values of a mask are not alike."""
    with np.errstate(invalid="ignore"):  # of equal infinities
        return np.abs(values - expected) > (ALIKE - 1) * np.abs(expected)


def _states(values: np.ndarray, limit: float) -> np.ndarray:
    """Return 0 for a finite value below `limit`, 1 for NaN, 2 and 3 for the infinities and a mask's values."""
    return np.select([np.isnan(values), values >= limit, values <= -limit], [1, 2, 3], 0)


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


def _of_one_output(calls: list[_Compared], least: float) -> Difference:
    """Return the figures of one output over its calls; `least` as in `_worst_part`."""
    largest, unequal = max(call.largest for call in calls), max(call.unequal for call in calls)
    floats = [(call.error, call.right) for call in calls if call.error is not None and call.right is not None]
    if not floats:
        return Difference(largest, unequal=unequal)
    scale = math.sqrt(np.mean([call.square for call in calls])) or 1.0
    relative = math.sqrt(np.mean([call.error_square for call in calls])) / scale
    repeated = max((_common(*pair) for pair in pairwise(floats)), default=0.0) / scale
    return Difference(largest, relative, largest / scale, repeated, unequal, _worst_part(calls, least * scale))


def _worst_part(calls: Sequence[_Compared], least: float) -> Part:
    """Return the part of an output with the largest error of its own that rounding does not explain.

    A part has one index on one axis: a class, a row, a coordinate of boxes. An output may have several scales, such as
    boxes in pixels and confidences. The root mean square of all values then hides errors of the small ones. So each
    part is compared as if it were an output of its own. Where terms cancel, rounding is larger than the part itself.
    Therefore an error counts only if it exceeds `least`, and `TIMES_EAGER_OF_A_PART` times eager mode's error there.
    Few errors may be small by chance, and items of a batch are alike. So for these, and below `DIFFERENT` errors, eager
    mode's worst part on the axis is the measure.

    A part's error is the root mean square of errors in a call and group of items, and of these the lower median.
    Without eager mode's own errors nothing is known of rounding, and the result is empty.
    """
    samples = [call.sample for call in calls if call.sample is not None and call.by_value is not None]
    values = [call.by_value for call in calls if call.by_value is not None]
    if len(samples) < len(calls):
        return NO_PART
    rank = len(samples[0].shape)
    if rank < 2 or any(len(sample.shape) != rank for sample in samples):
        return NO_PART  # a part of a one-dimensional output is a single value
    indices = [np.unravel_index(sample.places, tuple(sample.shape)) for sample in samples]
    worst = NO_PART
    for axis in range(rank):
        lengths = {sample.shape[axis] for sample in samples}
        if len(lengths) == 1 and 1 < (length := lengths.pop()) <= min(each.shape[1] for each in values):
            worst = max(worst, _worst_on_axis(axis, length, indices, values, least))
    return worst


def _worst_on_axis(
    axis: int, length: int, indices: Sequence[Sequence[np.ndarray]], values: Sequence[np.ndarray], least: float
) -> Part:
    """Return the worst part on one axis of that length, given each call's indices by axis and `by_value`."""
    index = np.concatenate([each[axis] for each in indices])
    _, own, right = np.concatenate(values, axis=1)
    noise, scale = (_by_index(index, squares, length) ** 0.5 for squares in (own**2, right**2))
    largest = noise.max()
    noise = np.where((_different(index, own, length) >= DIFFERENT) & (axis > 0), noise, largest)
    errors = []  # of each call, by index and group of items; NaN where a group has no value
    for places, (error, *_) in zip(indices, values, strict=True):
        groups = min(GROUPS, int(places[0].max()) + 1) if axis else 1
        place = places[axis] * groups + places[0] % groups
        by_group = _by_index(place, error**2, length * groups)
        by_group[np.bincount(place, minlength=length * groups) == 0] = math.nan
        errors.append(by_group.reshape(length, groups))
    every = np.sort(np.concatenate(errors, axis=1), axis=1)  # NaN last
    known = np.maximum((~np.isnan(every)).sum(axis=1), 1)
    found = np.nan_to_num(np.take_along_axis(every, (known - 1)[:, None] // 2, axis=1)[:, 0]) ** 0.5
    beyond = found > np.maximum(TIMES_EAGER_OF_A_PART * noise, least)
    relative = np.divide(found, scale, out=np.full(length, math.inf), where=scale > 0)
    worst = int(np.argmax(np.where(beyond, relative, -1.0)))
    return Part(float(relative[worst]), f"index {worst} of axis {axis}") if beyond[worst] else NO_PART


def _by_index(index: np.ndarray, values: np.ndarray, length: int) -> np.ndarray:
    """Return the mean of the values at each index, 0 without any."""
    return np.bincount(index, values, length) / np.maximum(np.bincount(index, minlength=length), 1)


def _different(index: np.ndarray, errors: np.ndarray, length: int) -> np.ndarray:
    """Return how many different errors each index has; equal rows of a batch give equal errors."""
    errors = errors.astype(np.float32)
    order = np.lexsort((errors, index))
    first = np.r_[True, (np.diff(index[order]) != 0) | (np.diff(errors[order]) != 0)]
    return np.bincount(index[order], first, length)


def _common(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> float:
    """Return the common part of two calls' errors: the root of their mean product, less its size by chance.

    Each call has errors and a reference. The result is 0 for references of other sizes, and for equal references.
    """
    (errors, right), (others, expected) = one, other
    if right.shape != expected.shape or right.size < 2 or np.array_equal(right, expected):
        return 0.0
    products = (errors * others).reshape(-1)
    standard_error = float(products.std(ddof=1)) / math.sqrt(products.size)
    return math.sqrt(max(0.0, float(products.mean()) - STANDARD_ERRORS * standard_error))


def emptiness(outputs: Mapping[str, np.ndarray]) -> str | None:
    """Return the flag of outputs without information: every array is zero, or constant; else None.

    A classifier with zero weights in its last layer gives zeros, and a softmax over one class gives ones. A detector
    without detections gives no value, which counts as zeros. Arrays of a single value alone are not constant, nor are
    outputs with one that changes between calls: a loss says something next to statistics of a frozen layer.
    """
    arrays = [values != "" if values.dtype.kind in "US" else values for values in outputs.values() if values.size]
    if outputs and not any(map(np.any, arrays)):
        return ZERO
    single: dict[str, set[Any]] = {}
    for key, values in outputs.items():
        if values.size == 1 and values.dtype.kind == "f":
            single.setdefault(key.partition(".")[2], set()).add(values.item())
    several = any(values.size > 1 for values in arrays) and all(len(found) == 1 for found in single.values())
    return CONSTANT if several and all((values == values.flat[0]).all() for values in arrays) else None


def are_numbers(outputs: Mapping[str, np.ndarray]) -> bool:
    """Return whether outputs can be a reference: there are some, and all are finite."""
    return bool(outputs) and all(np.isfinite(values).all() for values in outputs.values())
