"""Copies of models whose functions, such as hooks, hold the copy: copy.deepcopy keeps functions, with the original."""

from __future__ import annotations

import contextlib
import itertools
import operator
import weakref
from collections.abc import Iterable
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any

from frameworks.values import walk

_HOLDERS = (FunctionType, MethodType, partial, tuple, weakref.ReferenceType)  # copy.deepcopy may leave them as they are


def copies_in_functions(attributes: Iterable[dict[str, Any]], copies: dict[int, Any]) -> None:
    """Give functions and weak references in a copy's attributes the copies of what they hold, by deepcopy's memo."""
    values = [value for table in attributes for value in walk(table, entries)]
    tables = [value for value in values if isinstance(value, dict | list)]
    for _ in range(2):  # a function may share a variable with a later one
        for table in tables:
            held = table.items() if isinstance(table, dict) else enumerate(table)
            changed = [(key, of_copies(value, copies)) for key, value in held if isinstance(value, _HOLDERS)]
            for key, value in changed:  # not `update`, which some classes of dicts refuse
                if value is not table[key]:
                    table[key] = value


def entries(value: Any) -> list[Any]:
    """Return the values of a dict, list or tuple; none of another value."""
    return list(value.values() if isinstance(value, dict) else value) if isinstance(value, dict | list | tuple) else []


def of_copies(value: Any, copies: dict[int, Any]) -> Any:
    """Return a value's copy by the identity of the original, or what holds copies in its place; else itself."""
    if id(value) in copies:
        return copies[id(value)]
    if isinstance(value, MethodType):
        owner = of_copies(value.__self__, copies)
        return value if owner is value.__self__ else MethodType(value.__func__, owner)
    if type(value) is weakref.ReferenceType:
        target = value()
        owner = target if target is None else of_copies(target, copies)
        return value if owner is target else weakref.ref(owner)
    if type(value) is tuple:
        parts = tuple(of_copies(one, copies) for one in value)
        return value if all(map(operator.is_, parts, value)) else parts
    if type(value) is partial:
        before = (value.func, value.args, *value.keywords.values())
        function, args, *named = after = [of_copies(one, copies) for one in before]
        unchanged = all(map(operator.is_, before, after))
        return value if unchanged else partial(function, *args, **dict(zip(value.keywords, named, strict=True)))
    if isinstance(value, FunctionType):
        copies[id(value)] = made = value  # for a function that holds itself
        with contextlib.suppress(ValueError):  # a variable without a value yet
            made = _holding_copies(value, copies)
        if made is value:
            del copies[id(value)]
        else:
            copies[id(value)] = made
        return made
    return value


def _holding_copies(function: FunctionType, copies: dict[int, Any]) -> FunctionType:
    given, named = function.__defaults__ or (), function.__kwdefaults__ or {}
    cells = function.__closure__ or ()
    before = [*given, *named.values(), *(cell.cell_contents for cell in cells)]
    after = [of_copies(one, copies) for one in before]
    if all(map(operator.is_, before, after)) and not any(id(cell) in copies for cell in cells):
        return function
    rest = iter(after)
    defaults = tuple(itertools.islice(rest, len(given)))
    by_name = dict(zip(named, itertools.islice(rest, len(named)), strict=True))
    # Functions may share a variable.
    closure = tuple(copies.setdefault(id(cell), CellType(one)) for cell, one in zip(cells, rest, strict=True))
    made = FunctionType(function.__code__, function.__globals__, function.__name__, defaults, closure)
    made.__kwdefaults__ = by_name or None
    vars(made).update(vars(function))
    return made
