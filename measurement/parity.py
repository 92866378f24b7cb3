"""Whether two outputs are the same computation: errors relative to the reference's scale, and what of them repeats."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from measurement.exclusion import CONSTANT, ZERO

# Of the tolerance, which is of the error's root mean square: how far a single value may be off, and what may repeat.
LARGEST, REPEATED = 20.0, 0.25
# What two calls' errors have in common counts from so many standard errors on.
STANDARD_ERRORS = 3.0


@dataclass(frozen=True)
class Difference:
    """How far outputs are from a reference: the worst output's figures. All are infinite where nothing can be compared.

    `largest` is absolute. The others are relative to the root mean square of the output's reference: `relative` is the
    root mean square of the errors, `relative_largest` the largest of them, and `repeated` the part that two calls on
    different inputs have in common. Rounding differs from input to input; a bias that was dropped does not.
    """

    largest: float = 0.0
    relative: float = 0.0
    relative_largest: float = 0.0
    repeated: float = 0.0

    def within(self, tolerance: float) -> bool:
        """Whether the errors are those of rounding, whose root mean square may be `tolerance`."""
        return (
            self.relative <= tolerance
            and self.relative_largest <= LARGEST * tolerance
            and self.repeated <= REPEATED * tolerance
        )

    def worst(self, other: Difference) -> Difference:
        """The larger of either figure."""
        return Difference(*map(max, zip(self._figures, other._figures, strict=True)))

    @property
    def _figures(self) -> tuple[float, ...]:
        return self.largest, self.relative, self.relative_largest, self.repeated


INCOMPARABLE = Difference(math.inf, math.inf, math.inf, math.inf)


def difference(outputs: Mapping[str, np.ndarray], reference: Mapping[str, np.ndarray]) -> Difference:
    """How far outputs are from the reference; keys are `<call>.<name>`, as workers save them, or plain names.

    `INCOMPARABLE` for a missing output, another size, anything that is no number, or no reference at all: nothing
    compared is nothing shown.
    """
    errors: dict[str, list[np.ndarray]] = {}
    squares: dict[str, list[float]] = {}
    for key, expected in reference.items():
        values, expected = outputs.get(key), expected.astype(np.float64)
        if values is None or values.shape != expected.shape:
            return INCOMPARABLE
        if not np.isfinite(values).all() or not np.isfinite(expected).all():
            return INCOMPARABLE
        error = values.astype(np.float64) - expected
        name = key.partition(".")[2] or key
        errors.setdefault(name, []).append(error)
        squares.setdefault(name, []).append(_mean_square(expected))
    by_output = [_of_one_output(errors[name], math.sqrt(np.mean(squares[name])) or 1.0) for name in errors]
    return _worst(by_output) if by_output else INCOMPARABLE


def nearest_to_its_limit(
    pairs: Sequence[tuple[Mapping[str, np.ndarray], Mapping[str, np.ndarray]]], allowed: Callable[[str], float]
) -> tuple[Difference, float]:
    """The worst errors of all launches, among the outputs that are furthest towards their tolerance, and that one.

    `pairs` are outputs and reference by `<call>.<name>`, and `allowed` is the tolerance of an output by its name.
    """
    tolerance = {key: allowed(key.partition(".")[2] or key) for _, reference in pairs for key in reference}
    errors = []
    for limit in set(tolerance.values()) or {allowed("")}:
        held = [(mine, {key: theirs[key] for key in theirs if tolerance[key] == limit}) for mine, theirs in pairs]
        errors.append((functools.reduce(Difference.worst, (difference(*pair) for pair in held)), limit))
    return max(errors, key=lambda one: (not one[0].within(one[1]), one[0].relative / (one[1] or 1.0)))


def _worst(differences: list[Difference]) -> Difference:
    worst = differences[0]
    for one in differences[1:]:
        worst = worst.worst(one)
    return worst


def _mean_square(values: np.ndarray) -> float:
    return float(np.mean(np.square(values))) if values.size else 0.0


def _of_one_output(errors: list[np.ndarray], scale: float) -> Difference:
    """The figures of one output over its calls."""
    largest = max(float(np.max(np.abs(error), initial=0.0)) for error in errors)
    relative = math.sqrt(np.mean([_mean_square(error) for error in errors])) / scale
    pairs = [(one, other) for one, other in pairwise(errors) if one.shape == other.shape]
    repeated = max((_common(one, other) for one, other in pairs), default=0.0) / scale
    return Difference(largest, relative, largest / scale, repeated)


def _common(one: np.ndarray, other: np.ndarray) -> float:
    """The root of what two calls' errors have in common, beyond what chance may give: their mean product."""
    products = (one * other).reshape(-1)
    if products.size < 2:
        return 0.0
    standard_error = float(products.std(ddof=1)) / math.sqrt(products.size)
    return math.sqrt(max(0.0, float(products.mean()) - STANDARD_ERRORS * standard_error))


def emptiness(outputs: Mapping[str, np.ndarray]) -> str | None:
    """Return the flag of outputs that say nothing of what stands before them, whose every array is zero or constant.

    A classifier whose weights begin with zeros gives zeros, a softmax over one class gives ones. An array of one value
    alone is no constant.
    """
    arrays = [values for values in outputs.values() if values.size]
    if arrays and not any(map(np.any, arrays)):
        return ZERO
    several = any(values.size > 1 for values in arrays)
    return CONSTANT if several and all((values == values.flat[0]).all() for values in arrays) else None


def are_numbers(outputs: Mapping[str, np.ndarray]) -> bool:
    """Whether outputs may serve as a reference: there are some, and all are finite."""
    return bool(outputs) and all(np.isfinite(values).all() for values in outputs.values())
