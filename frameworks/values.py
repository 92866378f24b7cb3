"""Turn the output of a user model into arrays by name, whatever containers it comes in.

Floating-point values become float32 or float64, complex ones pairs of these along a last axis. Whole numbers, truth
values and strings keep their kind, since two modes must agree on them exactly. A framework's tensors, and the parts of
its own containers, come from its `Rules`; this module has the rules for Python's containers and for objects.
"""

from __future__ import annotations

import dataclasses
import enum
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

# Parts of one output; an object that reaches more holds a model or a data set.
MOST_PARTS = 20_000
BEYOND = f"every part after the first {MOST_PARTS:,}"
_SCALARS = (bool, int, float, complex, str, bytes, np.generic)
# What has attributes but no values of its own.
_OPAQUE = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType)


@dataclass
class Values:
    """The arrays of an output by name, and the names of what no rule turns into arrays."""

    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    not_compared: list[str] = field(default_factory=list)


class Rules:
    """What a framework knows of its own types. `array` and `parts` return None for a value that is none of its."""

    def array(self, value: Any) -> np.ndarray | None:
        """Return a dense tensor on the host, in its own kind."""
        return None

    def parts(self, value: Any) -> Mapping[str, Any] | None:
        """Return the parts of a container, or of a tensor that is not dense, by name; none of what holds no value."""
        return None

    def opaque(self, value: Any) -> bool:
        """Say whether a value is never walked into, such as a model."""
        return False


def read(output: Any, rules: Rules) -> Values:
    """Return the arrays of an output: of tuples by place, of mappings, dataclasses and other objects by name."""
    found = Values()
    _walk(output, "", rules, found, [])
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


def _walk(value: Any, name: str, rules: Rules, found: Values, path: list[int]) -> None:
    if value is None or id(value) in path:  # structure, or an object that holds itself
        return
    if len(found.arrays) + len(found.not_compared) >= MOST_PARTS:
        if found.not_compared[-1:] != [BEYOND]:
            found.not_compared.append(BEYOND)
        return
    array = _array(value, rules)
    if array is not None:
        found.arrays[(name or "output").replace("/", ":")] = array
        return
    before = len(found.arrays) + len(found.not_compared)
    parts = None if rules.opaque(value) or isinstance(value, _OPAQUE) else _parts(value, rules)
    for key, entry in parts or ():
        _walk(entry, f"{name}.{key}" if name else key, rules, found, [*path, id(value)])
    if parts is None and len(found.arrays) + len(found.not_compared) == before:
        found.not_compared.append(f"{name or 'output'} ({type(value).__name__})")


def _array(value: Any, rules: Rules) -> np.ndarray | None:
    if isinstance(value, enum.Enum):
        return np.array(str(value))
    if isinstance(value, (np.ndarray, *_SCALARS)):
        return host(np.asarray(value))
    array = rules.array(value)
    return None if array is None else host(array)


def _parts(value: Any, rules: Rules) -> Iterable[tuple[str, Any]] | None:
    """Return the parts of a container by name; None for a value that has none."""
    if isinstance(value, Mapping):
        return [(str(key), entry) for key, entry in value.items()]
    if isinstance(value, tuple | list):
        return list(zip(getattr(value, "_fields", map(str, range(len(value)))), value, strict=False))
    if isinstance(value, set | frozenset):
        return [(str(index), entry) for index, entry in enumerate(sorted(value, key=repr))]
    own = rules.parts(value)
    if own is not None:
        return list(own.items())
    if dataclasses.is_dataclass(value):
        return [(entry.name, getattr(value, entry.name, None)) for entry in dataclasses.fields(value)]
    return list(named_attributes(value).items()) or None


def named_attributes(value: Any) -> dict[str, Any]:
    """Return what an object holds by the names that outputs have, code and modules excepted."""
    held = sorted(attributes(value).items())
    return {name.strip("_") or name: entry for name, entry in held if not isinstance(entry, _OPAQUE)}


def attributes(value: Any) -> dict[str, Any]:
    """Return what an object holds by name, in slots as well."""
    slots = [slot for kind in type(value).__mro__ for slot in _names(getattr(kind, "__slots__", ()))]
    return {slot: getattr(value, slot, None) for slot in slots} | getattr(value, "__dict__", {})


def _names(slots: Any) -> Iterable[str]:
    return [slots] if isinstance(slots, str) else [slot for slot in slots if slot not in ("__dict__", "__weakref__")]


def tensors(output: Any, is_tensor: Callable[[Any], bool]) -> dict[str, Any]:
    """Return the tensors of an output of the suite's own models by name; what is no container is passed over."""
    found: dict[str, Any] = {}
    _collect(output, "", is_tensor, found)
    return found


def _collect(value: Any, name: str, is_tensor: Callable[[Any], bool], found: dict[str, Any]) -> None:
    if is_tensor(value):
        found[(name or "output").replace("/", ":")] = value
        return
    if isinstance(value, Mapping):
        parts = [(str(key), entry) for key, entry in value.items()]
    elif isinstance(value, tuple | list):
        parts = list(zip(getattr(value, "_fields", map(str, range(len(value)))), value, strict=False))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
    else:
        return
    for key, entry in parts:
        _collect(entry, f"{name}.{key}" if name else key, is_tensor, found)
