"""NumPy's arrays that a user's model reads, in the places where Python keeps them; tensors take their places.

A graph holds NumPy's arrays as constants, which are folded. It takes tensors as arguments, except for small ones.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

Slot = tuple[Any, Any, Any]  # an owner, a name in it, and the value there
# Sizes above which arrays are exchanged, by kind. TensorFlow holds tensors of up to 128 values as constants as well.
FLOATING = dict.fromkeys("fcV", 128)
WHOLE = dict.fromkeys("iu", 1024)  # smaller ones are often axes and lengths, which Python reads
# What is exchanged, in the order in which a model is tried.
CHOICES = (FLOATING | WHOLE, FLOATING, {})


@dataclass(frozen=True)
class Arrays:
    """Places of arrays, each with its first value and the one that has tensors instead."""

    places: Sequence[tuple[Slot, Any]]

    @classmethod
    def found(cls, slots: Iterable[Slot], sizes: dict[str, int], tensor: Callable[[np.ndarray], Any]) -> Arrays:
        """Return the places among slots; an array that is held twice becomes one tensor."""
        made: dict[int, Any] = {}

        def exchanged(value: Any) -> Any:
            if _is_array(value, sizes):
                if id(value) not in made:
                    made[id(value)] = tensor(value)
                return made[id(value)]
            if not isinstance(value, tuple):
                return value
            parts = tuple(map(exchanged, value))
            if all(one is other for one, other in zip(value, parts, strict=True)):
                return value
            return value._make(parts) if hasattr(value, "_make") else type(value)(parts)

        pairs = [(slot, exchanged(slot[2])) for slot in slots]
        return cls([(slot, new) for slot, new in pairs if new is not slot[2]])

    def put(self) -> None:
        """Put the tensors in their places."""
        for (owner, name, _), new in self.places:
            _put(owner, name, new)

    def restore(self) -> None:
        """Put the first values back."""
        for (owner, name, first), _ in self.places:
            _put(owner, name, first)


def _is_array(value: Any, sizes: dict[str, int]) -> bool:
    """Return whether a value is an array of numbers that is exchanged."""
    if type(value) not in (np.ndarray, np.memmap) or value.dtype.names is not None:
        return False
    return value.size > sizes.get(value.dtype.kind, np.inf)


def _put(owner: Any, name: Any, value: Any) -> None:
    if isinstance(owner, partial):  # only its arguments by place; those by keyword are a dict
        owner.__setstate__((owner.func, value, owner.keywords, vars(owner)))
    elif isinstance(owner, type | types.FunctionType | types.CellType):
        setattr(owner, name, value)
    else:
        owner[name] = value
