"""Read JSON into dataclasses and TypedDicts, checking each field: types, sizes, finite numbers."""

from __future__ import annotations

import dataclasses
import functools
import math
import types
from collections.abc import Callable
from typing import Annotated, Any, Required, Union, get_args, get_origin, get_type_hints, is_typeddict

MOST_ITEMS, MOST_CHARACTERS, DEPTH = 1_000_000, 1 << 20, 12
LARGEST_INTEGER = 1 << 63


class Misfit(ValueError):
    """An invalid value; the message states where and why, without a full stop."""


Rule = Callable[[Any], str | None]  # the fault in a value of the right type, or None


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
    """Return a rule for text that is not blank, of at most `characters`."""
    return lambda text: _some(text.strip()) or (f"has {len(text)} characters" if len(text) > characters else None)


Reader = Callable[[Any, str], Any]  # takes a value and its location; raises Misfit


def read(kind: type, data: Any, where: str = "") -> Any:
    """Return an instance of a dataclass or TypedDict; entries of `data` without a field are dropped. Raises Misfit."""
    if not isinstance(data, dict):
        raise Misfit(f"{where or kind.__name__} is not an object")
    values = {}
    for field, required, reader in _fields(kind):
        name = f"{where}.{field}" if where else field
        if field in data:
            values[field] = reader(data[field], name)
        elif required:
            raise Misfit(f"{name} is missing")
    return kind(**values)


def value(kind: Any, data: Any, where: str) -> Any:
    """Return `data` as the type `kind`: a dataclass, a container of types, or a single type. Raises Misfit."""
    return _reader(kind)(data, where)


@functools.cache
def _fields(kind: type) -> tuple[tuple[str, bool, Reader], ...]:
    """Return the name, necessity and reader of each field; null is no value in a TypedDict's unnecessary field."""
    hints = get_type_hints(kind, include_extras=True)
    if is_typeddict(kind):
        needed = {name: get_origin(hint) is Required for name, hint in hints.items()}
        return tuple(
            (name, needed[name], _reader(hint if needed[name] else hint | None)) for name, hint in hints.items()
        )
    missing, fields = dataclasses.MISSING, dataclasses.fields(kind)
    return tuple(
        (field.name, field.default is field.default_factory is missing, _reader(hints[field.name])) for field in fields
    )


@functools.cache
def _reader(kind: Any) -> Reader:
    """Return a reader for values of a field's type `kind`."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Required:
        return _reader(arguments[0])
    if origin is Annotated and isinstance(arguments[1], type):  # which reads what the first is for type checkers
        return _reader(arguments[1])
    if origin is Annotated:
        return functools.partial(_ruled, _reader(arguments[0]), arguments[1:])
    if origin in (Union, types.UnionType):  # always with None here
        (other,) = map(_reader, (argument for argument in arguments if argument is not types.NoneType))
        return lambda value, where: None if value is None else other(value, where)
    if origin is list or (origin is tuple and arguments[-1] is ...):
        return functools.partial(_series, _reader(arguments[0]))
    if origin is tuple:
        return functools.partial(_places, tuple(map(_reader, arguments)))
    if origin is dict:
        return functools.partial(_mapping, _reader(arguments[1]))
    if kind is Any:
        return _any
    if hasattr(kind, "from_json"):
        return lambda value, where: kind.from_json(value)
    if is_typeddict(kind) or (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        return functools.partial(read, kind)
    return functools.partial(_single, kind)


def _ruled(reader: Reader, rules: tuple[Rule, ...], value: Any, where: str) -> Any:
    value = reader(value, where)
    for rule in rules:
        if problem := rule(value):
            raise Misfit(f"{where} {problem}")
    return value


def _series(reader: Reader, value: Any, where: str) -> tuple:
    """Return a tuple of any length (`tuple[float, ...]`)."""
    if not isinstance(value, (list, tuple)) or len(value) > MOST_ITEMS:
        raise Misfit(f"{where} is not a list, or is too long")
    return tuple([reader(entry, where) for entry in value])


def _places(readers: tuple[Reader, ...], value: Any, where: str) -> tuple:
    """Return a tuple with a type per entry."""
    values = _series(lambda entry, where: entry, value, where)
    if len(values) != len(readers):
        raise Misfit(f"{where} has {len(values)} entries, not {len(readers)}")
    return tuple(reader(entry, where) for reader, entry in zip(readers, values, strict=True))


def _mapping(reader: Reader, value: Any, where: str) -> dict:
    if not isinstance(value, dict) or len(value) > MOST_ITEMS:
        raise Misfit(f"{where} is not an object, or is too large")
    return {str(key): reader(entry, f"{where}.{key}"[:200]) for key, entry in value.items()}


def _single(kind: type, value: Any, where: str) -> Any:
    """Return a string, boolean or finite number; a float field accepts integers. Raises Misfit."""
    if kind is float and type(value) is float and math.isfinite(value):
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool) and abs(value) < LARGEST_INTEGER:
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise Misfit(f"{where} is {type(value).__name__}, not {kind.__name__}")
    if isinstance(value, float) and not math.isfinite(value):
        raise Misfit(f"{where} is {value}, which is not a number")
    if isinstance(value, int) and abs(value) >= LARGEST_INTEGER:
        raise Misfit(f"{where} has too many digits")
    if isinstance(value, str) and len(value) > MOST_CHARACTERS:
        raise Misfit(f"{where} has {len(value)} characters")
    return value


def _any(value: Any, where: str, depth: int = DEPTH) -> Any:
    """Return a JSON value of at most this depth, with finite numbers. Raises Misfit for others."""
    if isinstance(value, (dict, list, tuple)):
        if not depth or len(value) > MOST_ITEMS:
            raise Misfit(f"{where} is nested too deeply or is too long")
        if isinstance(value, dict):
            return {str(key): _any(entry, where, depth - 1) for key, entry in value.items()}
        return [_any(entry, where, depth - 1) for entry in value]
    return value if value is None else _single(type(value), value, where)


def data_of(value: Any) -> Any:
    """Return a dataclass as JSON-ready data, which `read` reverses; a field's own `to_json` takes precedence."""
    if type(value) in _PLAIN:
        return value
    if (names := _names(value.__class__)) is not None:
        return {name: _entry(getattr(value, name)) for name in names}
    return [_entry(entry) for entry in value] if isinstance(value, (list, tuple)) else value


_PLAIN = frozenset((str, int, float, bool, types.NoneType))


@functools.cache
def _names(kind: type) -> tuple[str, ...] | None:
    """Return the names of a dataclass's fields; None for another type."""
    return tuple(field.name for field in dataclasses.fields(kind)) if dataclasses.is_dataclass(kind) else None


def _entry(value: Any) -> Any:
    if type(value) in _PLAIN:
        return value
    return value.to_json() if hasattr(value, "to_json") else data_of(value)
