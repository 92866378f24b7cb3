"""Turn the output of a user model into arrays by name, whatever containers it comes in.

Floating-point values become float32 or float64, complex ones pairs of these along a last axis. Whole numbers, truth
values and strings keep their kind, since two modes must agree on them exactly. A framework's tensors, and the parts of
its own containers, come from its `Rules`; this module has the rules for Python's containers and for objects.
"""

from __future__ import annotations

import dataclasses
import enum
import types
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# Limits of parts per output and objects per walk; an object that reaches more holds a model or a data set.
MOST_PARTS, MOST_REACHED = 20_000, 100_000
BEYOND = f"every part after the first {MOST_PARTS:,}"
_SCALARS = (bool, int, float, complex, str, bytes, np.generic)
_NUMBERS = (bool, int, float, complex)
# Types with attributes but without values.
_OPAQUE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)


@dataclass
class Values:
    """The arrays of an output by name, and the names of values that no rule turns into arrays.

    `shapes` are those of arrays before they were sampled.
    """

    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    not_compared: list[str] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)


class Rules:
    """A framework's rules for its own types. `array` and `parts` return None for a value of another type."""

    # Whether a list of numbers is one array: not where a graph turns its entries into tensors.
    lists_are_arrays = False

    def array(self, value: Any) -> np.ndarray | None:
        """Return a dense tensor on the host, in its own kind."""
        return None

    def parts(self, value: Any) -> Mapping[str, Any] | None:
        """Return the parts of a container or sparse tensor by name; an empty dict for dtypes, devices and the like."""
        return None

    def opaque(self, value: Any) -> bool:
        """Return whether a walk skips a value's contents, such as a model's."""
        return False


def read(output: Any, rules: Rules) -> Values:
    """Return the arrays of an output: of tuples by place, of mappings, dataclasses and other objects by name.

    Of several with one name, the second in the order of their keys gets `~2`, whatever order a graph keeps.
    """
    found = Values()
    leaves: list[tuple[str, str, np.ndarray | None]] = []
    places: dict[str, list[str]] = {}
    for leaf in _leaves(output, "", "", rules, []):
        if len(leaves) == MOST_PARTS:
            found.not_compared.append(BEYOND)
            break
        leaves.append(leaf)
        places.setdefault(leaf[0], []).append(leaf[1])
    for name, place, array in leaves:
        if array is None:
            found.not_compared.append(name)
            continue
        rank = sorted(places[name]).index(place) + 1 if len(places[name]) > 1 else 1
        name = name if rank == 1 else f"{name}~{rank}"
        while name in found.arrays:
            name += "~"
        found.arrays[name] = array
    return found


def host(array: np.ndarray) -> np.ndarray | None:
    """Return an array as it is compared; None for a kind without a rule."""
    array = np.asarray(array)
    if array.dtype.kind == "c":
        parts = np.float64 if array.dtype.itemsize > 8 else np.float32
        return np.stack([array.real, array.imag], axis=-1).astype(parts)
    if array.dtype.kind == "f":
        return array if array.dtype in (np.float32, np.float64) else array.astype(np.float32)
    if array.dtype.kind == "O" and all(isinstance(value, str | bytes) for value in array.reshape(-1)):
        texts = [value.decode("utf-8", "replace") if isinstance(value, bytes) else value for value in array.reshape(-1)]
        return np.array(texts, dtype=np.str_).reshape(array.shape)
    return array if array.dtype.kind in "biuUS" else None


def walk(value: Any, parts: Callable[[Any], Iterable[Any]]) -> Iterator[Any]:
    """Yield a value and all that it reaches by `parts`, each object once, in order."""
    pending: list[Any] = [value]
    seen: dict[int, Any] = {}
    while pending and len(seen) < MOST_REACHED:
        one = pending.pop()
        if id(one) not in seen:
            seen[id(one)] = one  # kept, so that nothing else gets its identity
            yield one
            pending += reversed(list(parts(one)))


def held(value: Any) -> list[Any]:
    """Return the entries of a container or another object, in its order."""
    if value is None or isinstance(value, (*_SCALARS, *_OPAQUE, np.ndarray)):
        return []
    return [entry for _, entry in _parts(value, Rules()) or ()]


def _leaves(
    value: Any, name: str, place: str, rules: Rules, path: list[int]
) -> Iterator[tuple[str, str, np.ndarray | None]]:
    """Yield name and place of each array, and of values without a rule with None; no two places are equal."""
    if value is None or id(value) in path:  # structure, or an object that holds itself
        return
    array = _array(value, rules)
    if array is not None:
        yield (name or "output").replace("/", ":"), place, array
        return
    parts = None if rules.opaque(value) or isinstance(value, _OPAQUE) else _parts(value, rules)
    for key, entry in parts or ():
        yield from _leaves(entry, f"{name}.{key}" if name else str(key), f"{place}.{key!r}", rules, [*path, id(value)])
    if parts is None:
        yield f"{name or 'output'} ({type(value).__name__})", place, None


def _array(value: Any, rules: Rules) -> np.ndarray | None:
    if isinstance(value, enum.Enum):
        return np.array(str(value))
    if isinstance(value, (np.ndarray, *_SCALARS)):
        return host(np.asarray(value))
    if rules.lists_are_arrays and type(value) is list and value and all(type(one) in _NUMBERS for one in value):
        return host(np.asarray(value))
    array = rules.array(value)
    return None if array is None else host(array)


def _parts(value: Any, rules: Rules) -> Iterable[tuple[Any, Any]] | None:
    """Return the parts of a container by key; None for a value that has none."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, tuple | list):
        return list(zip(getattr(value, "_fields", range(len(value))), value, strict=False))
    if isinstance(value, set | frozenset):
        return list(enumerate(sorted(value, key=repr)))
    known = rules.parts(value)
    if known is not None:
        return list(known.items())
    if dataclasses.is_dataclass(value):
        return [(entry.name, getattr(value, entry.name, None)) for entry in dataclasses.fields(value)]
    return list(named_attributes(value).items()) or None


def named_attributes(value: Any) -> dict[str, Any]:
    """Return an object's attributes by the names of outputs, without code and modules.

    Names lose their outer underscores where all names then still differ.
    """
    kept = [(name, entry) for name, entry in sorted(attributes(value).items()) if not isinstance(entry, _OPAQUE)]
    bare = Counter(name.strip("_") for name, _ in kept)
    return {name if bare[name.strip("_")] > 1 else name.strip("_") or name: entry for name, entry in kept}


def attributes(value: Any) -> dict[str, Any]:
    """Return an object's attributes by name, those in slots as well."""
    slots = [slot for kind in type(value).__mro__ for slot in _names(getattr(kind, "__slots__", ()))]
    return {slot: getattr(value, slot, None) for slot in slots} | getattr(value, "__dict__", {})


def _names(slots: Any) -> Iterable[str]:
    return [slots] if isinstance(slots, str) else [slot for slot in slots if slot not in ("__dict__", "__weakref__")]
