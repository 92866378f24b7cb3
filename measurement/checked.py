"""JSON into dataclasses, checked field by field: types, sizes, finite numbers."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Callable
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

MOST_ITEMS, MOST_CHARACTERS, DEPTH = 1_000_000, 1 << 20, 12
LARGEST_INTEGER = 1 << 63


class Misfit(ValueError):
    """A value that does not fit; the message says where and why, without a full stop."""


Rule = Callable[[Any], str | None]  # what is wrong with a value of the right type, if anything


def _positive(number: float) -> str | None:
    return None if number > 0 else f"is {number:g}, not above 0"


def _no_negative(number: float) -> str | None:
    return None if number >= 0 else f"is {number:g}, not 0 or above"


def _some(values: Any) -> str | None:
    return None if values else "is empty"


Positive = Annotated[float, _positive]
Duration = Annotated[float, _no_negative]  # seconds
Count = Annotated[int, _no_negative]


def shorter_than(characters: int) -> Rule:
    """A rule for text that says something, and no more than so much."""
    return lambda text: _some(text.strip()) or (f"has {len(text)} characters" if len(text) > characters else None)


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def read(kind: type, data: Any, where: str = "") -> Any:
    """An instance of the dataclass `kind`; what it has no field for is left out. Raises Misfit."""
    if not isinstance(data, dict):
        raise Misfit(f"{where or kind.__name__} is no object")
    values, hints = {}, _hints(kind)
    for field in dataclasses.fields(kind):
        name = f"{where}.{field.name}" if where else field.name
        if field.name in data:
            values[field.name] = fitted(hints[field.name], data[field.name], name)
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise Misfit(f"{name} is missing")
    return kind(**values)


def fitted(kind: Any, value: Any, where: str) -> Any:
    """`value` as the type `kind` of a field. Raises Misfit."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        value = fitted(arguments[0], value, where)
        for rule in arguments[1:]:
            if problem := rule(value):
                raise Misfit(f"{where} {problem}")
        return value
    if origin in (Union, types.UnionType):  # always with None here
        (other,) = (argument for argument in arguments if argument is not types.NoneType)
        return None if value is None else fitted(other, value, where)
    if origin is tuple:
        return _series(arguments, value, where)
    if origin is dict:
        if not isinstance(value, dict) or len(value) > MOST_ITEMS:
            raise Misfit(f"{where} is no object, or too large a one")
        return {str(key): fitted(arguments[1], entry, f"{where}.{key}"[:200]) for key, entry in value.items()}
    if kind is Any:
        return _any(value, where)
    if hasattr(kind, "from_json"):
        return kind.from_json(value)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return read(kind, value, where)
    return _single(kind, value, where)


def _series(kinds: tuple, value: Any, where: str) -> tuple:
    """A tuple of one type (`tuple[float, ...]`), or of a type for each place."""
    if not isinstance(value, (list, tuple)) or len(value) > MOST_ITEMS:
        raise Misfit(f"{where} is no list, or too long a one")
    if kinds[-1] is ...:
        return tuple(fitted(kinds[0], entry, where) for entry in value)
    if len(value) != len(kinds):
        raise Misfit(f"{where} has {len(value)} entries, not {len(kinds)}")
    return tuple(fitted(kind, entry, where) for kind, entry in zip(kinds, value, strict=True))


def _single(kind: type, value: Any, where: str) -> Any:
    """A text, a truth value, or a number that is finite; a whole one will do for a float."""
    if kind is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST_INTEGER:
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise Misfit(f"{where} is {type(value).__name__}, not {kind.__name__}")
    if isinstance(value, float) and not math.isfinite(value):
        raise Misfit(f"{where} is {value}, which is no number")
    if isinstance(value, int) and abs(value) >= LARGEST_INTEGER:
        raise Misfit(f"{where} has too many digits")
    if isinstance(value, str) and len(value) > MOST_CHARACTERS:
        raise Misfit(f"{where} has {len(value)} characters")
    return value


def _any(value: Any, where: str, depth: int = DEPTH) -> Any:
    """Any JSON, so deep and no deeper, all its numbers finite."""
    if isinstance(value, (dict, list, tuple)):
        if not depth or len(value) > MOST_ITEMS:
            raise Misfit(f"{where} is too deep or too long")
        if isinstance(value, dict):
            return {str(key): _any(entry, where, depth - 1) for key, entry in value.items()}
        return [_any(entry, where, depth - 1) for entry in value]
    return value if value is None else _single(type(value), value, where)


def data_of(value: Any) -> Any:
    """A dataclass as JSON-ready data, which `read` takes back; fields with a `to_json` of their own by that."""
    if dataclasses.is_dataclass(value):
        fields = [(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)]
        return {name: entry.to_json() if hasattr(entry, "to_json") else data_of(entry) for name, entry in fields}
    if isinstance(value, (list, tuple)):
        return [entry.to_json() if hasattr(entry, "to_json") else data_of(entry) for entry in value]
    return value
