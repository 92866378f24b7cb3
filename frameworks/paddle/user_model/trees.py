"""Inputs and outputs of user models as nested values: tensors in containers, dataclasses and other objects."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import paddle
from paddle import nn

from frameworks.values import attributes, held, named_attributes, walk

# Values handed on unchanged: without tensors, or a model or code.
_PLAIN = (str, bytes, bool, int, float, complex, type(None), np.generic, type, nn.Layer)
# The key of its class among the fields of a dataclass, which Paddle's graphs take as a dict.
_CLASS = "dataclass"
_VALUES = (
    (paddle.Tensor, paddle.static.InputSpec, paddle.pir.Value)
    if hasattr(paddle, "pir")
    else (paddle.Tensor, paddle.static.InputSpec)
)


def changed(value: Any, change: Callable[[Any], Any], memo: dict[int, Any] | None = None) -> Any:
    """Return a copy of a nested value with `change` applied to each tensor and array; shared parts stay shared."""
    memo = {} if memo is None else memo
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, paddle.Tensor | np.ndarray):
        made = change(value)
    elif isinstance(value, _PLAIN) or _is_code(value):
        return value
    elif isinstance(value, tuple):
        parts = [changed(entry, change, memo) for entry in value]
        made = type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    elif isinstance(value, list):
        made = [changed(entry, change, memo) for entry in value]
    elif isinstance(value, Mapping) and hasattr(value, "__setitem__"):
        made = copy.copy(value)
        for key, entry in value.items():
            made[key] = changed(entry, change, memo)
    else:
        for found in tensors(value):
            changed(found, change, memo)
        made = copy.deepcopy(value, memo)
    memo[id(value)] = made
    return made


def tensors(value: Any) -> list[Any]:
    """Return the tensors and arrays that a nested value holds, each once, in its order."""
    return [one for one in walk(value, _parts) if isinstance(one, (*_VALUES, np.ndarray))]


def _parts(value: Any) -> list[Any]:
    return [] if isinstance(value, (*_VALUES, *_PLAIN)) else held(value)


def packed(value: Any) -> Any:
    """Return inputs as `to_static` takes them: the fields of a dataclass that holds tensors as a dict."""
    if isinstance(value, list):
        return [packed(entry) for entry in value]
    if isinstance(value, tuple):
        parts = [packed(entry) for entry in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, dict):
        return {key: packed(entry) for key, entry in value.items()}
    if _is_dataclass(value) and tensors(value):
        held = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {_CLASS: type(value)} | {name: packed(entry) for name, entry in held.items()}
    return value


def unpacked(value: Any) -> Any:
    """Return a packed value in the user's own form."""
    if isinstance(value, dict) and isinstance(value.get(_CLASS), type):
        made = object.__new__(value[_CLASS])
        for name, entry in value.items():
            if name != _CLASS:
                object.__setattr__(made, name, unpacked(entry))
        return made
    if isinstance(value, list):
        return [unpacked(entry) for entry in value]
    if isinstance(value, tuple):
        parts = [unpacked(entry) for entry in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    return {key: unpacked(entry) for key, entry in value.items()} if isinstance(value, dict) else value


def opened(value: Any) -> Any:
    """Return an output in a graph's form: an object with tensors that is no container of Paddle's becomes a dict."""
    if isinstance(value, (*_VALUES, *_PLAIN)):
        return value
    if isinstance(value, Mapping):
        return {key: opened(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        if hasattr(value, "_fields"):
            return {name: opened(entry) for name, entry in zip(value._fields, value, strict=True)}
        return type(value)([opened(entry) for entry in value])
    if _is_dataclass(value):
        return {field.name: opened(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if not tensors(value):
        return value
    return {name: opened(entry) for name, entry in named_attributes(value).items() if not _is_code(entry)}


def form(value: Any, path: tuple[int, ...] = ()) -> Any:
    """Return a nested value with None for each tensor and array: the part that input sets must share."""
    if isinstance(value, (*_VALUES, np.ndarray)) or id(value) in path:
        return None
    if isinstance(value, Mapping):
        parts = dict(value)
    elif isinstance(value, list | tuple):
        parts = dict(enumerate(value))
    elif isinstance(value, _PLAIN) or _is_code(value) or (_is_compared(value) and not tensors(value)):
        return value
    else:
        parts = attributes(value)
    return type(value), {name: form(part, (*path, id(value))) for name, part in parts.items()}


def _is_compared(value: Any) -> bool:
    return type(value).__eq__ is not object.__eq__


def _is_code(value: Any) -> bool:
    """Return whether a value is called and holds no tensor."""
    return callable(value) and not tensors(value)


def _is_dataclass(value: Any) -> bool:
    return dataclasses.is_dataclass(value) and not isinstance(value, type | Mapping)
