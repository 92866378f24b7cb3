"""What the functions of a user's model reach besides their arguments: arrays, which are parameters, and compiled parts.

A place is where Python keeps a value that a function reads: a cell of its closure, a global, a default, an attribute.
Its arrays are exchanged there, so eager mode runs the user's own code.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import sysconfig
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

COMPILED = ("PjitFunction", "JitFn", "JitWrapped", "_JitWrapper")
_LIBRARIES = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")})


class Places:
    """The places with arrays that a callable reaches, and `removed`, the names from which a compiler was removed."""

    def __init__(self, root: Any):
        self._places: list[tuple[Any, str]] = []
        self._put_back: list[tuple[Any, str, Any]] = []
        self._seen: set[int] = set()
        self._keep: list[Any] = []  # so that no identity in `_seen` is given to another object
        self.removed: list[str] = []
        self._walk(root)

    def values(self) -> list[Any]:
        """Return what the places hold."""
        return [_get(*place) for place in self._places]

    def put(self, values: Sequence[Any]) -> None:
        """Exchange what the places hold."""
        for place, value in zip(self._places, values, strict=True):
            _put(*place, value)

    @contextlib.contextmanager
    def holding(self, values: Sequence[Any]) -> Iterator[None]:
        """Exchange what the places hold within a block."""
        before = self.values()
        self.put(values)
        try:
            yield
        finally:
            self.put(before)

    def only(self, wanted: Callable[[Any], bool]) -> None:
        """Forget the places that hold another array than those that are wanted."""
        held = zip(self._places, self.values(), strict=True)
        self._places = [place for place, value in held if all(map(wanted, filter(is_array, jax.tree.leaves(value))))]

    def restore(self) -> None:
        """Put back what every place held at first."""
        for place in reversed(self._put_back):
            _put(*place)

    def _walk(self, value: Any) -> None:
        if id(value) in self._seen or isinstance(value, type | types.BuiltinFunctionType | str | bytes):
            return
        self._seen.add(id(value))
        self._keep.append(value)
        if isinstance(value, types.FunctionType):
            self._walk_function(value)
        elif isinstance(value, types.MethodType):
            self._walk(value.__func__)
            self._walk(value.__self__)
        elif isinstance(value, functools.partial):
            self._walk(value.func)
        elif isinstance(value, types.ModuleType) or not is_users(value):
            return
        else:
            for function in [f for kind in type(value).__mro__ for f in vars(kind).values()]:
                if isinstance(function, types.FunctionType) and is_users(function):
                    self._walk(function)
            if not _is_tree(value):
                for name in list(getattr(value, "__dict__", {})):
                    self._visit(value.__dict__, name)

    def _walk_function(self, function: types.FunctionType) -> None:
        for cell in function.__closure__ or ():
            self._visit(cell, "cell_contents")
        self._visit(function, "__defaults__")
        self._visit(function, "__kwdefaults__")
        if not is_users(function):
            return
        names = _names(function.__code__)
        for name in sorted(names & function.__globals__.keys()):
            self._visit(function.__globals__, name)
            module = function.__globals__[name]
            if isinstance(module, types.ModuleType) and is_users(module):
                for inner in sorted(names & vars(module).keys()):
                    self._visit(vars(module), inner)

    def _visit(self, owner: Any, name: str) -> None:
        value = _get(owner, name)
        if value is None or any(owner is known and name == other for known, other, _ in self._put_back):
            return
        new = uncompiled(value) if is_users(innermost(value)) else value
        if new is not value:
            self.removed.append(getattr(new, "__name__", name))
        new = as_tree(new)
        if new is not value:
            _put(owner, name, new)
        leaves = jax.tree.leaves(new)
        held = any(map(is_array, leaves))
        if held or new is not value:
            self._put_back.append((owner, name, value))
        if held:
            self._places.append((owner, name))
        for leaf in [new, *leaves]:
            if not is_array(leaf):
                self._walk(leaf)


def is_array(value: Any) -> bool:
    """Say whether a value is an array that a model computes with."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0 and value.dtype.kind in "fcV" and value.dtype.names is None
    return isinstance(value, jax.Array)


def uncompiled(value: Any) -> Any:
    """Return what a compiler made a value of, if it is that of JAX, Flax or Equinox; else the value."""
    while type(value).__name__ in COMPILED and hasattr(value, "__wrapped__"):
        value = value.__wrapped__
    return value


def as_tree(value: Any) -> Any:
    """Return a partial function, or a method of a pytree, as the pytree of what it holds."""
    if isinstance(value, functools.partial) and not isinstance(value, jax.tree_util.Partial):
        return jax.tree_util.Partial(uncompiled(value.func), *value.args, **value.keywords)
    if isinstance(value, types.MethodType) and _is_tree(value.__self__):
        return jax.tree_util.Partial(uncompiled(value.__func__), value.__self__)
    return value


def innermost(value: Any) -> Any:
    """Return the function at the end of what wraps it."""
    while hasattr(value, "__wrapped__") and not isinstance(value, type):
        value = value.__wrapped__
    return value


def is_users(value: Any) -> bool:
    """Say whether code, or an object's class, is in no library."""
    code = getattr(value, "__code__", None)
    if code is not None:
        file = code.co_filename
    elif isinstance(value, types.ModuleType):
        file = getattr(value, "__file__", None) or _LIBRARIES[0]
    else:
        file = getattr(sys.modules.get(type(value).__module__), "__file__", None) or _LIBRARIES[0]
    return not file.startswith((*_LIBRARIES, "<frozen"))


def _is_tree(value: Any) -> bool:
    return not jax.tree_util.all_leaves([value])


def _names(code: types.CodeType) -> set[str]:
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*inner)


def _get(owner: Any, name: str) -> Any:
    if isinstance(owner, dict):
        return owner.get(name)
    try:
        return getattr(owner, name)
    except ValueError:  # an empty cell
        return None


def _put(owner: Any, name: str, value: Any) -> None:
    if isinstance(owner, dict):
        owner[name] = value
    else:
        setattr(owner, name, value)
