"""Values that a user's model reads in addition to its arguments: arrays, which are parameters, and compiled functions.

A place is where Python keeps a value that a function reads: a cell of its closure, a global, a default, an attribute of
an object or a class, an entry of a list or dict. Arrays are exchanged there, so eager mode runs the user's own code.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import inspect
import operator
import sys
import sysconfig
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from frameworks.adapter import Unsupported
from frameworks.jax.inspect import program

COMPILED = ("PjitFunction", "JitFn", "JitWrapped", "_JitWrapper")
CACHED_PARTIAL = "_cached_partial.<locals>.cache_args_wrapper"  # Flax's, whose cache only a compiled function takes
_LIBRARIES = tuple({sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")})
_JAX = str(Path(jax.__file__).parent) + "/"
LARGE = 1024  # values of weights and of integers worth naming, and entries of a container that takes long to copy
_CONTAINERS = (list, dict, deque)
_TREES = (list, dict, OrderedDict, defaultdict)  # which JAX flattens
_METHODS = (staticmethod, classmethod)
_GLOBALS = ("LOAD_GLOBAL", "LOAD_NAME", "STORE_GLOBAL")
_PLAIN = (types.BuiltinFunctionType, types.ModuleType, str, bytes)
_SCALARS = (type(None), bool, int, float, complex, str, bytes)  # which reach nothing
_UNSET = object()  # what an empty cell or slot holds


@dataclass
class Place:
    """A place, its first value, and its present one: a tree, with the numbers of its arrays."""

    owner: Any
    name: Any
    first: Any
    form: Any
    leaves: list[Any]
    numbers: list[int | None]

    def tree(self, arrays: Sequence[Any]) -> Any:
        pairs = zip(self.leaves, self.numbers, strict=True)
        return jax.tree.unflatten(self.form, [leaf if n is None else arrays[n] for leaf, n in pairs])


class Reached:
    """Values reachable from the arguments of `plain`.

    `arrays` has each array once; `removed` are names of compiled functions; `values` are the unchanged values that
    it visited. Nothing is exchanged before `put`.
    """

    def __init__(self) -> None:
        self.arrays: list[Any] = []
        self.removed: list[str] = []
        self.values: list[Any] = []
        self._all = self.arrays
        self._places: dict[tuple[int, Any], Place | None] = {}
        self._contents: list[tuple[Any, Any]] = []  # of lists, dicts and objects: what they held at first
        # Variables outside of these, such as globals: owner, name and first value.
        self._variables: dict[tuple[int, Any], tuple[Any, Any, Any]] = {}
        self._namespaces: dict[int, tuple[Any, frozenset[str]]] = {}  # of modules and classes: the names at first
        self._seen: dict[int, Any] = {}  # by identity, and kept, so that nothing else gets it
        self._holders: dict[int, tuple[Any, Any]] = {}  # owner and name of containers, which calls may replace

    def plain(self, value: Any, name: Any = "") -> Any:
        """Return a value with nothing compiled and partial functions as trees, and find the values that it reaches."""
        self.values.append(value)
        value = jax.tree.map(functools.partial(self._uncompiled, name), value)
        nodes: list[Any] = []
        jax.tree.flatten(value, is_leaf=lambda node: nodes.append(node))  # type: ignore[func-returns-value]
        for node in nodes:
            if not isinstance(node, tuple | list | dict) and not is_array(node):
                self._uncompile_static(node)
                self.walk(node)
        return value

    def _uncompile_static(self, node: Any) -> None:
        """Put the original of each compiled function among a tree's attributes that JAX does not flatten there."""
        if jax.tree_util.all_leaves([node]):
            return
        for name, part in list(getattr(node, "__dict__", {}).items()):
            if uncompiled(part) is not part:
                vars(node)[name] = self._uncompiled(name, part)

    def only(self, wanted: Callable[[Any], bool]) -> None:
        """Exchange only the arrays that are wanted: others are constants of the code."""
        self.arrays = list(filter(wanted, self._all))
        numbers = {id(array): number for number, array in enumerate(self.arrays)}
        for place in filter(None, self._places.values()):
            place.numbers = [numbers.get(id(leaf)) for leaf in place.leaves]

    def put(self, arrays: Sequence[Any]) -> None:
        """Restore the first values, with these arrays and nothing compiled."""
        self.restore()
        for place in filter(None, self._places.values()):
            _put(place.owner, place.name, place.tree(arrays))

    def restore(self) -> None:
        """Restore the first values."""
        self._put_back(self._contents, self._first())

    @contextlib.contextmanager
    def holding(self, arrays: Sequence[Any]) -> Iterator[None]:
        """Exchange arrays within a block, and restore them at its end."""
        held = [*((owner, name, _get(owner, name)) for owner, name, _ in self._first()), *self._new()]
        known = {(id(owner), name) for owner, name, _ in held}
        made = [value for *_, value in held if _is_small(value) and not self._is_walked(value)]
        contents = [(container, container.copy()) for container in (*(one for one, _ in self._contents), *made)]
        try:
            self.put(arrays)
            yield
        finally:
            for owner, name, _ in self._new():
                if (id(owner), name) not in known:
                    _remove(owner, name)
            self._put_back(contents, held)

    def after(self, arrays: Sequence[Any]) -> list[Any]:
        """Return the arrays in the places after a call that began with others."""
        now = list(arrays)
        for place in filter(None, self._places.values()):
            leaves, form = jax.tree.flatten(_get(self._present(place.owner), place.name))
            for leaf, number in zip(leaves, place.numbers, strict=True) if form == place.form else ():
                if number is not None and leaf is not arrays[number]:
                    now[number] = leaf
        return now

    def _present(self, owner: Any) -> Any:
        """Return the container that a call has put in an owner's place; the owner where there is none."""
        if id(owner) not in self._holders:
            return owner
        holder, name = self._holders[id(owner)]
        found = _get(self._present(holder), name)
        return found if type(found) is type(owner) else owner

    def contents(self) -> list[Any]:
        """Return the leaves of the present values in lists, dicts, objects and variables."""
        values = [_get(owner, name) for owner, name, _ in self._variables.values()]
        values += [value for *_, value in self._new()]
        for held, _ in self._contents:
            values += _entries(held)
        return [leaf for value in values if not self._is_walked(value) for leaf in _leaves(value)]

    def omit_unchanged(self) -> None:
        """Restore no longer the variables and large containers that a call has left as they were: copies take long."""
        self._variables = {key: one for key, one in self._variables.items() if _get(*one[:2]) is not one[2]}
        self._contents = [(c, first) for c, first in self._contents if len(first) < LARGE or not _same(c, first)]
        self._namespaces = {id(owner): (owner, self._namespaces[id(owner)][1]) for owner, *_ in self._new()}

    def _first(self) -> list[tuple[Any, Any, Any]]:
        """Return owner, name and first value of each variable and place."""
        return [*self._variables.values(), *((p.owner, p.name, p.first) for p in self._places.values() if p)]

    def _new(self) -> list[tuple[Any, str, Any]]:
        """Return owner, name and value of what calls have added to modules and classes since these were walked.

        Names of Python's own are omitted, as of the warnings that a module has given.
        """
        return [
            (owner, name, _names_of(owner)[name])
            for owner, known in self._namespaces.values()
            for name in _names_of(owner).keys() - known
            if not (name.startswith("__") and name.endswith("__"))
        ]

    def _note(self, owner: Any) -> None:
        self._namespaces.setdefault(id(owner), (owner, frozenset(_names_of(owner))))

    @staticmethod
    def _put_back(contents: Sequence[tuple[Any, Any]], held: Sequence[tuple[Any, Any, Any]]) -> None:
        for container, first in contents:
            if container or first:
                container.clear()
                (container.update if isinstance(container, dict) else container.extend)(first)
        for owner, name, value in held:
            now = _get(owner, name)
            made_once = value is None and not _is_traced(now)  # such as a mask in a global
            if now is not value and not made_once:  # an enum refuses even its own value
                _put(owner, name, value)

    def walk(self, value: Any) -> None:
        """Find the values reachable from a function, class or object."""
        if id(value) in self._seen or isinstance(value, _PLAIN):
            return
        self._seen[id(value)] = value
        if isinstance(value, types.FunctionType):
            self._walk_function(value)
        elif isinstance(value, type):
            self._walk_class(value)
        elif isinstance(value, types.MethodType):
            self.walk(value.__func__)
            self.walk(value.__self__)
        elif isinstance(value, functools.partial):
            self.walk(value.func)
        else:
            self._walk_object(value)

    def _walk_function(self, function: types.FunctionType) -> None:
        users = is_users(function)
        for cell in function.__closure__ or ():
            if users or callable(_get(cell, "cell_contents")):
                self._visit(cell, "cell_contents")
        if not users:
            return
        self._visit(function, "__defaults__")
        self._visit(function, "__kwdefaults__")
        self._walk_container(vars(function))
        self._note(function.__globals__)
        read, attributes = _names(function.__code__)
        for name in sorted(read & function.__globals__.keys()):
            self._visit(function.__globals__, name)
            module = function.__globals__[name]
            if isinstance(module, types.ModuleType) and is_users(module):
                self._note(vars(module))
                for inner in sorted(attributes & vars(module).keys()):
                    self._visit(vars(module), inner)

    def _walk_class(self, kind: type) -> None:
        for owner in filter(is_users, kind.__mro__):
            self._note(owner)
            for name, value in list(vars(owner).items()):
                if isinstance(value, property | functools.cached_property):
                    self.walk(value.fget if isinstance(value, property) else value.func)
                elif callable(value) or isinstance(value, _METHODS) or not name.startswith("__"):
                    self._visit(owner, name)

    def _walk_object(self, value: Any) -> None:
        if inspect.getattr_static(value, "__wrapped__", None) is not None:  # asks no `__getattr__` of the user's
            self.walk(value.__wrapped__)
        users = is_users(type(value)) or isinstance(value, types.SimpleNamespace)
        if not users:
            for part in getattr(value, "__dict__", {}).values() if callable(value) else ():
                if isinstance(part, types.FunctionType):  # a rule of differentiation
                    self.walk(part)
            return
        self.walk(type(value))
        if not jax.tree_util.all_leaves([value]):
            for name, part in list(getattr(value, "__dict__", {}).items()):
                if uncompiled(part) is not part:
                    self._visit(vars(value), name)
        else:
            for slot in [slot for kind in type(value).__mro__ for slot in vars(kind).get("__slots__", ())]:
                self._visit(value, slot)
            if hasattr(value, "__dict__"):
                self._walk_container(vars(value))

    def _walk_container(self, container: Any, holder: tuple[Any, Any] | None = None) -> None:
        if id(container) in self._seen:
            return
        self._seen[id(container)] = container
        if holder:
            self._holders[id(container)] = holder
        self._contents.append((container, container.copy()))
        for name in list(container) if isinstance(container, dict) else range(len(container)):
            self._visit(container, name)

    def _is_walked(self, value: Any) -> bool:
        return isinstance(value, _CONTAINERS) and id(value) in self._seen

    def _visit(self, owner: Any, name: Any) -> None:
        value = _get(owner, name)
        if (id(owner), name) in self._places:
            return
        if not (self._is_walked(owner) or callable(value) or isinstance(value, types.ModuleType)):
            self._variables[id(owner), name] = owner, name, value
        if value is _UNSET or type(value) in _SCALARS:
            return
        if type(value) in _TREES or (isinstance(value, _CONTAINERS) and jax.tree_util.all_leaves([value])):
            self._walk_container(value, (owner, name))
            return
        self._places[id(owner), name] = None
        before = len(self.removed)
        new = self.plain(value, f"{owner.__name__}.{name}" if isinstance(owner, type) else name)
        leaves, form = jax.tree.flatten(new)
        numbers = [self._number(leaf) if is_array(leaf) else None for leaf in leaves]
        if len(self.removed) > before or any(number is not None for number in numbers):
            self._places[id(owner), name] = Place(owner, name, value, form, leaves, numbers)

    def _uncompiled(self, name: Any, value: Any) -> Any:
        function = value.__func__ if isinstance(value, _METHODS) else value
        original = uncompiled(function)
        if original is not function:
            self.removed.append(name if "." in str(name) else getattr(original, "__name__", str(name)))
            value = type(value)(original) if isinstance(value, _METHODS) else original
        if isinstance(value, jax.stages.Compiled | jax.export.Exported):
            raise Unsupported(
                f"model() returned a {type(value).__name__}, which has no eager mode: return the original function."
            )
        if isinstance(value, types.FunctionType) and value.__code__.co_qualname == CACHED_PARTIAL:
            inside = inspect.getclosurevars(value).nonlocals
            value = functools.partial(inside["f"], *inside["cached_args"])
        if isinstance(value, functools.partial) and not isinstance(value, jax.tree_util.Partial):
            parts = [self.plain(part, name) for part in (value.func, value.args, value.keywords)]
            return jax.tree_util.Partial(parts[0], *parts[1], **parts[2])
        if isinstance(value, types.MethodType) and not jax.tree_util.all_leaves([value.__self__]):
            return jax.tree_util.Partial(self._uncompiled(name, value.__func__), value.__self__)
        return value

    def _number(self, array: Any) -> int:
        for number, known in enumerate(self.arrays):
            if known is array:
                return number
        self.arrays.append(array)
        return len(self.arrays) - 1


def compiled(primitives: Iterable[program.Primitive]) -> list[str]:
    """Return the compiled functions that primitives run, and that are not a library's own, as JAX's and optax's are."""
    functions = []
    for name, params in primitives:
        if name in program.JITTED:
            body = params["jaxpr"].jaxpr
            _, _, place = body.debug_info.func_src_info.partition(" at ")
            is_pmap = any(part.primitive.name == "shard_map" for part in body.eqns)
            if is_pmap or not (place.startswith(_JAX) or _is_in_library(params["name"], place.rpartition(":")[0])):
                functions.append(f"{params['name']} ({place or 'no line known'}) under jax.jit")
        elif name == "call_exported":
            functions.append(f"{params['exported'].fun_name} from jax.export")
        for inner in program.inner(params):
            functions += compiled((equation.primitive.name, equation.params) for equation in inner.eqns)
    return functions


def constants(jaxpr: Any) -> list[str]:
    """Return the types of a traced call's constants, which are no arguments.

    They are arrays of floating point, and others from `LARGE` values on.
    """
    kept = [
        array
        for array in getattr(jaxpr, "consts", ())
        if np.size(array) > (1 if jnp.issubdtype(array.dtype, jnp.inexact) else LARGE)
    ]
    found = [f"{array.dtype}[{','.join(map(str, array.shape))}]" for array in kept]
    inner = (part for equation in jaxpr.eqns for part in program.inner(equation.params))
    return [*found, *(one for part in inner for one in constants(part))]


def is_array(value: Any) -> bool:
    """Return whether a value is an array that a model computes with."""
    if isinstance(value, np.ndarray):
        return value.ndim > 0 and value.dtype.kind in "fcV" and value.dtype.names is None
    return isinstance(value, jax.Array)


def uncompiled(value: Any) -> Any:
    """Return the function that the user compiled with JAX, Flax or Equinox; a library's own functions stay as is."""
    while type(value).__name__ in COMPILED and hasattr(value, "__wrapped__") and not _is_librarys(value):
        value = value.__wrapped__
    return value


def is_users(value: Any) -> bool:
    """Return whether a function, class, module or object belongs to the user's code, outside every library."""
    if isinstance(value, types.FunctionType):
        file = value.__code__.co_filename
    else:
        module = value if isinstance(value, types.ModuleType) else sys.modules.get(getattr(value, "__module__", ""))
        file = getattr(module, "__file__", None) or _LIBRARIES[0]
    return not file.startswith((*_LIBRARIES, "<frozen"))


def _is_librarys(value: Any) -> bool:
    """Return whether a library has a compiled function under the name that it was given there."""
    inner = value
    while hasattr(inner, "__wrapped__"):
        inner = inner.__wrapped__
    found: Any = sys.modules.get(getattr(inner, "__module__", ""))
    if found is None or is_users(inner):
        return False
    for name in getattr(inner, "__qualname__", "").split("."):
        found = vars(found).get(name) if hasattr(found, "__dict__") else None
    return found is value


def _is_in_library(name: str, file: str) -> bool:
    """Return whether a library has a compiled function under this name in this file."""
    modules = [module for module in list(sys.modules.values()) if getattr(module, "__file__", None) == file]
    found = [getattr(module, name, None) for module in modules]
    return any(type(one).__name__ in COMPILED and _is_librarys(one) for one in found)


def _names(code: types.CodeType) -> tuple[set[str], set[str]]:
    """Return the names of the globals that code reads or writes, and those of its attributes."""
    globals_ = {one.argval for one in dis.get_instructions(code) if one.opname in _GLOBALS}
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return globals_.union(*(one for one, _ in inner)), set(code.co_names).union(*(other for _, other in inner))


def _remove(owner: Any, name: str) -> None:
    if isinstance(owner, dict):
        del owner[name]
    else:
        delattr(owner, name)


def _is_small(value: Any) -> bool:
    """Return whether a value is a container that is copied at once."""
    return isinstance(value, _CONTAINERS) and len(value) < LARGE


def _names_of(owner: Any) -> Any:
    return owner if isinstance(owner, dict) else vars(owner)


def _entries(container: Any) -> Any:
    return container.values() if isinstance(container, dict) else container


def _leaves(value: Any) -> list[Any]:
    """Return the leaves of a tree, or of the entries of a container whose keys JAX cannot sort."""
    try:
        return jax.tree.leaves(value)
    except ValueError:
        inner = _entries(value) if isinstance(value, (tuple, *_CONTAINERS)) else ()
        return [leaf for entry in inner for leaf in _leaves(entry)]


def _same(container: Any, other: Any) -> bool:
    return len(container) == len(other) and all(map(operator.is_, _entries(container), _entries(other)))


def _is_traced(value: Any) -> bool:
    return any(isinstance(leaf, jax.core.Tracer) for leaf in _leaves(value))


def _get(owner: Any, name: Any) -> Any:
    if isinstance(owner, type):
        return vars(owner).get(name)
    if isinstance(owner, list | deque):
        return owner[name] if name < len(owner) else None
    if isinstance(owner, dict):
        return owner.get(name)
    try:
        return getattr(owner, name, _UNSET)
    except ValueError:  # an empty cell
        return _UNSET


def _put(owner: Any, name: Any, value: Any) -> None:
    if value is _UNSET:
        object.__delattr__(owner, name)
    elif isinstance(owner, _CONTAINERS):
        owner[name] = value
    elif isinstance(owner, type | types.FunctionType | types.CellType):
        setattr(owner, name, value)
    else:
        object.__setattr__(owner, name, value)  # of a frozen dataclass, too
