"""Weights of large models from one pool of random numbers: quick to make, small to keep, the same everywhere."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

POOL = "pool"  # the name under which the numbers are kept
# Odd, so that a large tensor that wraps around the pool repeats no row.
LARGEST = (1 << 26) + 1
STANDARD_DEVIATION = np.float32(0.02)

Shapes = dict[str, tuple[int, ...]]


def pool(shapes: Shapes, rng: np.random.Generator) -> np.ndarray:
    """Draw normal numbers of standard deviation 0.02 for these shapes: as many as they need, within bounds."""
    count = min(LARGEST, sum(math.prod(shape) for shape in shapes.values()))
    return rng.standard_normal(count, dtype=np.float32) * STANDARD_DEVIATION


class Drawn(Mapping):
    """Tensors by name, made on access: stored ones, and the others from the pool.

    Each takes the numbers after the previous tensor's, and wraps around at the pool's end. So tensors of a large model
    share numbers, at other offsets: no two rows are equal. `powers` scales a tensor by a power of two, which commutes
    with rounding to any dtype.
    """

    def __init__(self, kept: Mapping[str, np.ndarray], shapes: Shapes, powers: Mapping[str, int]):
        self._kept, self._pool = {name: value for name, value in kept.items() if name != POOL}, kept[POOL]
        self._shapes, self._powers = shapes, powers
        self._made: dict[str, np.ndarray] = {}  # large tensors that are no views of the pool
        self._starts, start = {}, 0
        for name, shape in shapes.items():
            if name not in self._kept:
                self._starts[name] = start
                start = (start + math.prod(shape)) % len(self._pool)

    def __getitem__(self, name: str) -> np.ndarray:
        if name in self._kept:
            return self._kept[name]
        if name in self._made:
            return self._made[name]
        start, shape = self._starts[name], self._shapes[name]
        values = _from(self._pool, start, math.prod(shape)).reshape(shape)
        if name in self._powers:
            values = values * values.dtype.type(2 ** self._powers[name])
        if name in self._powers or values.size > len(self._pool):
            self._made[name] = values
        return values

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __len__(self) -> int:
        return len(self._shapes)


def _from(numbers: np.ndarray, start: int, count: int) -> np.ndarray:
    """Return `count` numbers from `start` on, wrapping around the end; without a copy if they are contiguous."""
    if start + count <= len(numbers):
        return numbers[start : start + count]
    drawn, done = np.empty(count, numbers.dtype), 0
    while done < count:
        piece = numbers[start : start + count - done]
        drawn[done : done + len(piece)] = piece
        done, start = done + len(piece), 0
    return drawn
