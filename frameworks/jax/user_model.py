"""User models in JAX: functions with their parameters or closures, callable pytrees, and Flax modules."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from frameworks import user_file, user_model
from frameworks.adapter import Capture, Step, Unsupported
from frameworks.jax import program, runtime
from frameworks.jax.captured import Places, as_tree, uncompiled
from frameworks.program import PRODUCTS, product_dtypes
from frameworks.user_file import Fault
from frameworks.user_model import Call, Counted, Inputs
from frameworks.values import Rules
from measurement.cells import Cell
from workloads.own import Own
from workloads.spec import Arrays

try:
    from flax import linen, nnx
except ImportError:
    linen = nnx = None

STATEFUL = (
    "training of a Flax module with more than parameters (running statistics, random streams) is not run: return "
    "(function, parameters) from model()."
)
BY = "XLA's cost analysis of the lowered module, before it is optimised"
# Calls in StableHLO that compute nothing, or that XLA takes apart.
COUNTED_CALLS = ("Sharding", "SPMD", "annotate_device_placement", "mhlo.", "chlo.", "LayoutConstraint")


class JaxRules(Rules):
    """Arrays of JAX, and the children of what is registered as a pytree."""

    def array(self, value: Any) -> np.ndarray | None:
        if not isinstance(value, jax.Array):
            return None
        if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            return np.asarray(jax.random.key_data(value))
        array = np.asarray(value)
        if array.dtype.kind in "biufc":
            return array
        return array.astype(np.float32 if jnp.issubdtype(array.dtype, jnp.floating) else np.int32)

    def parts(self, value: Any) -> Mapping[str, Any] | None:
        if isinstance(value, np.dtype | jax.Device | jax.sharding.Sharding):
            return {}
        if jax.tree_util.all_leaves([value]):
            return None
        children = jax.tree_util.tree_flatten_with_path(value, is_leaf=lambda child: child is not value)[0]
        return {_key(path[0]): child for path, child in children}

    def opaque(self, value: Any) -> bool:
        return bool(nnx) and isinstance(value, nnx.Module | linen.Module)


@jax.tree_util.register_pytree_node_class
class Partitioned:
    """A tree for jit: arrays and floating-point numbers are arguments, and all else is static, compared by equality."""

    def __init__(self, dynamic: Sequence[Any], static: tuple):
        self._dynamic, self._static = dynamic, static

    @classmethod
    def of(cls, tree: Any) -> Any:
        """Return a tree as jit takes it: itself where nothing in it is static."""
        leaves, form = jax.tree.flatten(tree)
        if all(map(_is_dynamic, leaves)):
            return tree
        static = tuple(None if _is_dynamic(leaf) else Static(leaf) for leaf in leaves)
        return cls([leaf for leaf in leaves if _is_dynamic(leaf)], (form, static))

    @staticmethod
    def joined(tree: Any) -> Any:
        """Return the tree that was partitioned."""
        if not isinstance(tree, Partitioned):
            return tree
        left, (form, static) = iter(tree._dynamic), tree._static
        return jax.tree.unflatten(form, [next(left) if kept is None else kept.value for kept in static])

    def tree_flatten(self) -> tuple[Sequence[Any], tuple]:
        return self._dynamic, self._static

    @classmethod
    def tree_unflatten(cls, static: tuple, dynamic: Sequence[Any]) -> Partitioned:
        return cls(dynamic, static)


class Static:
    """A value that a compilation holds."""

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Static) or type(self.value) is not type(other.value):
            return False
        return bool(np.all(self.value == other.value))

    def __hash__(self) -> int:
        try:
            return hash(self.value)
        except TypeError:
            return hash(type(self.value))


class Function:
    """A function with its parameters: those it is given, and the arrays that it reaches otherwise."""

    writes = False

    def __init__(self, function: Callable, given: Any = None, takes_them: bool = False, itself: bool = False):
        self._function, self._takes_them, self._itself = function, takes_them, itself
        self.places = Places(function)
        self.params = (given, self.places.values())

    def settle(self, inputs: Inputs, cast: Callable[[Any], Any]) -> None:
        """Take as parameters what the function can be traced with: NumPy code needs NumPy's arrays."""
        given = self.params[0]
        places = list(self.places._places)
        for wanted in (lambda _: True, lambda array: isinstance(array, jax.Array), lambda _: False):
            self.places.only(wanted)
            self.params = (given, self.places.values())
            if not self.places._places:
                return
            try:
                arguments = Partitioned.of(cast(self.params)), Partitioned.of(inputs)
                jax.eval_shape(self._traced, *arguments)
                return
            except Exception:  # as its graph mode will say, where it is for another reason
                continue
        self.places._places = places

    def bind(self, params: Any) -> Callable:
        """Return what the user calls, with parameters from now on."""
        given, held = params
        self.places.put(held)
        return given if self._itself else partial(self._function, given) if self._takes_them else self._function

    def pure(self, params: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call it with parameters, and leave nothing behind."""
        given, held = params
        with self.places.holding(held):
            callee = given if self._itself else self._function
            return callee(given, *args, **kwargs) if self._takes_them else callee(*args, **kwargs)

    def release(self) -> None:
        """Put back what the user's functions held."""
        self.places.restore()

    def _traced(self, params: Any, inputs: Any) -> None:
        self.pure(Partitioned.joined(params), *Partitioned.joined(inputs))


class Module:
    """A module of NNX, split into its graph and its state. Where it `writes`, a call returns the state after it too."""

    def __init__(self, module: Any):
        self._graph, self.params = nnx.split(module)
        self.writes = False

    def bind(self, params: Any) -> Callable:
        return nnx.merge(self._graph, params)

    def pure(self, params: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        # Variables of NNX are written to only where they were made: inside of what traces.
        module = nnx.merge(self._graph, jax.tree.map(lambda leaf: leaf, params))
        output = module(*args, **kwargs)
        return (output, nnx.state(module)) if self.writes else output

    def settle(self, inputs: Inputs, cast: Callable[[Any], Any]) -> None:
        """Find whether a call writes to the module's state."""
        module = nnx.merge(self._graph, cast(self.params))
        before = jax.tree.leaves(nnx.state(module))
        args, kwargs = inputs
        module(*args, **kwargs)
        after = jax.tree.leaves(nnx.state(module))
        self.writes = len(before) != len(after) or any(a is not b for a, b in zip(before, after, strict=True))

    def release(self) -> None:
        """Do nothing: the user's objects are as they were."""


class Model(user_model.UserModel):
    """A user's model in the cell's dtype on its device."""

    rules = JaxRules()

    def __init__(
        self,
        workload: Own,
        weights: Arrays,
        inputs: Sequence[Arrays],
        device: jax.Device,
        dtype: np.dtype,
        trains: bool = False,
    ):
        if not workload.is_file:
            raise Unsupported(f"{workload.name} is no model of JAX: write a file.")
        super().__init__(user_file.UserFile(workload.source))
        self.device, self.dtype, self.source = device, np.dtype(dtype), workload.source
        wider = ("float64", "float32") if self.dtype.itemsize < 4 else ("float64",)
        self.precisions = wider if self.dtype != np.float64 else ()
        self.seed(int(weights["seed"]))
        made = self.file.call("model")
        self.sets = [self.place(arrays) for arrays in inputs]
        self.applied, self.detail, unwrapped = _applied(made, self.sets[0], int(weights["seed"]), trains)
        try:
            self.applied.settle(self.fresh(self.sets[0]), self._on_device)
            # A key draws other numbers where numbers have 64 bits; a module that writes nothing draws none.
            draws = not isinstance(self.applied, Module) or self.applied.writes
            if any(map(_is_key, jax.tree.leaves((self.sets, self.applied.params if draws else ())))):
                self.precisions = tuple(name for name in self.precisions if name != "float64")
            self.params = self._on_device(self.applied.params)
            self.restore()
            self.settle()
        except BaseException:
            self.release()
            raise
        self.settings = {"called as": self.detail}
        if unwrapped:
            self.settings["jit removed from"] = ", ".join(dict.fromkeys(unwrapped))

    def seed(self, seed: int) -> None:
        user_file.seed_python(seed)

    def placed(self, given: Inputs) -> Inputs:
        for leaf in jax.tree.leaves(given):
            _register(leaf)
        return self._on_device(given)

    def fresh(self, inputs: Inputs) -> Inputs:
        # Arrays of JAX are never written to; containers are made again.
        return jax.tree.map(lambda leaf: copy.deepcopy(leaf) if _is_object(leaf) else leaf, inputs)

    def call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self._bound(*args, **kwargs)

    def restore(self) -> None:
        self._bound = self.applied.bind(self.params)

    @contextlib.contextmanager
    def in_precision(self, dtype: str) -> Iterator[tuple[Any, Callable[[Inputs], Inputs]]]:
        with jax.enable_x64(dtype == "float64"):
            yield cast(self.params, np.dtype(dtype)), partial(cast, dtype=np.dtype(dtype))

    def calling(self, model: Any) -> Call:
        params = model

        def call(args: tuple, kwargs: dict[str, Any]) -> Any:
            nonlocal params
            output = self.applied.pure(params, args, kwargs)
            if self.applied.writes:
                output, params = output
            return output

        return call

    def release(self) -> None:
        """Put back what the user's functions held."""
        self.applied.release()

    def forward(self, params: Any, inputs: Any) -> Any:
        """Return the output, and the state after it where a call writes to it, of what jit is given."""
        return self.applied.pure(Partitioned.joined(params), *Partitioned.joined(inputs))

    def arguments(self) -> tuple:
        """Return what jit is given in the first call."""
        return Partitioned.of(self.params), Partitioned.of(self.sets[0])

    def cost(self) -> Counted | None:
        return counted(self.forward, *self.arguments())

    def computes_in(self) -> Sequence[str]:
        listed = program.executed(self.applied.pure, self.params, *self.fresh(self.sets[0]))
        products = [operation for operation in listed if operation.kind in PRODUCTS]
        return product_dtypes([replace(o, arguments={"dtype": o.arguments.get("operand 0", "")}) for o in products])

    def _on_device(self, tree: Any) -> Any:
        put = lambda leaf: jax.device_put(leaf, self.device) if isinstance(leaf, jax.Array) else leaf  # noqa: E731
        return jax.tree.map(put, cast(tree, self.dtype))


class Jitted:
    """A call of a model's graph, which holds its state where a call writes to it."""

    def __init__(self, model: Model, graph: Callable):
        self._model, self._graph, self._writes = model, graph, model.applied.writes
        self._first = self._params = Partitioned.of(model.params)
        # Inputs that were made for one call are partitioned within it.
        self._known = {identity(args, kwargs): Partitioned.of((args, kwargs)) for args, kwargs in model.sets}
        self._sets = list(model.sets)  # so that no identity above is given to another object

    def __call__(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        output = self._graph(self._params, self._known.get(identity(args, kwargs)) or Partitioned.of((args, kwargs)))
        if self._writes:
            output, state = output
            self._params = Partitioned.of(state)
        return output

    def restore(self) -> None:
        self._params = self._first
        self._model.restore()


def prepare(model: Model, cell: Cell, compilations: Any) -> Step:
    """Return the step of the model in the cell's mode."""
    arguments = model.arguments()
    call, capture = compilations.callable(cell, model.forward, arguments, model.detail)
    if cell.mode == "eager":
        listed: Callable = lambda: program.executed(  # noqa: E731
            model.applied.pure, model.params, *model.fresh(model.sets[0])
        )
        return Step(model.call, model.sets, capture, model.restore, listed, own=model)
    refuse_what_is_held(model)
    step = Jitted(model, call)
    listed = partial(program.captured, call, runtime.shapes(arguments))
    told = lambda: with_recompilations(capture(), model)  # noqa: E731
    return Step(step, model.sets, told, step.restore, listed, own=model)


def identity(args: tuple, kwargs: dict[str, Any]) -> tuple[int, int]:
    """Return what tells an input set that is kept from every other; all empty tuples are one object."""
    return id(args), id(kwargs)


def refuse_what_is_held(model: Model) -> None:
    """Raise Unsupported for inputs with an object whose arrays jit would not be given."""
    for leaf in jax.tree.leaves(model.sets):
        if _is_object(leaf) and not isinstance(leaf, np.ndarray) and model.values(leaf).arrays:
            raise Unsupported(
                f"a {type(leaf).__name__} among the inputs holds arrays that jit would not be given: register it with "
                "jax.tree_util."
            )


def with_recompilations(captured: Capture, model: Model) -> Capture:
    """Return what was captured with the compilations after the first, and what was other in their inputs."""
    again = min(captured.graphs or 0, captured.compilations or 0) - 1
    if again < 1:
        return captured
    reason = "; ".join(_changes(list(map(_signature, model.sets)))) or "inputs of another form"
    return replace(captured, recompilations=again, recompiled=((Path(model.source).name, reason),))


def _changes(signatures: list[list[tuple[str, str]]]) -> Iterator[str]:
    """Yield what each form of the inputs after the first has that the first has not."""
    known = dict(signatures[0])
    for signature in [other for index, other in enumerate(signatures) if other not in signatures[:index]][1:]:
        changed = [(name, kind) for name, kind in signature if known.get(name) != kind]
        what = "inputs of another shape" if any("[" in kind for _, kind in changed) else "inputs of another value"
        if changed:
            yield f"{what}: {', '.join(f'{name} {kind}' for name, kind in changed)}"


def counted(function: Callable, *arguments: Any) -> Counted | None:
    """Return what XLA says of a call before it fuses; None where it has no rule for a part of it."""
    lowered = jax.jit(function).lower(*arguments)
    calls = re.findall(r"custom_call @([\w.]+)", lowered.as_text())
    found = lowered.cost_analysis() or {}
    if found.get("flops", -1) < 0 or not all(name.startswith(COUNTED_CALLS) for name in calls):
        return None
    held = [leaf for leaf in jax.tree.leaves((arguments, lowered.out_info)) if hasattr(leaf, "shape")]
    once = sum(int(np.prod(leaf.shape)) * leaf.dtype.itemsize for leaf in held)
    moved, transcendentals = found.get("bytes accessed", once), found.get("transcendentals", 0)
    return Counted(int(found["flops"]), once, max(int(moved), 0), BY, max(int(transcendentals), 0))


def cast(tree: Any, dtype: np.dtype) -> Any:
    """Return a tree with its arrays as JAX's: floating point in a dtype, complex numbers in the type of that width."""

    def one(leaf: Any) -> Any:
        if not _is_array(leaf):
            return leaf
        if jnp.issubdtype(leaf.dtype, jnp.floating):
            return jnp.asarray(leaf, dtype)
        if jnp.issubdtype(leaf.dtype, jnp.complexfloating):
            return jnp.asarray(leaf, np.complex128 if dtype == np.float64 else np.complex64)
        return jnp.asarray(leaf)

    return jax.tree.map(one, tree)


def _applied(made: Any, inputs: Inputs, seed: int, trains: bool) -> tuple[Any, str, list[str]]:
    """Return how what `model()` returned is called with parameters, what it is, and from where jit was removed."""
    removed: list[str] = []

    def plain(value: Any) -> Any:
        if isinstance(value, jax.stages.Compiled | jax.export.Exported):
            raise Unsupported(
                f"model() returned a {type(value).__name__}, which has no eager mode: return the function that it was "
                "made of."
            )
        original = uncompiled(value)
        if original is not value:
            removed.append(getattr(original, "__name__", type(original).__name__))
        return original

    def function(*arguments: Any, **how: bool) -> Function:
        applied = Function(*arguments, **how)
        removed.extend(applied.places.removed)
        return applied

    if isinstance(made, tuple) and len(made) == 2 and callable(made[0]):
        return function(plain(made[0]), made[1], takes_them=True), "a function and its parameters", removed
    made = as_tree(plain(made))
    if nnx and isinstance(made, nnx.Module):
        (made.train if trains else made.eval)()
        if trains and jax.tree.leaves(nnx.state(made, nnx.Not(nnx.Param))):
            raise Unsupported(STATEFUL)
        removed += _without_jit(made)
        return Module(made), "flax.nnx, split and merged", removed
    if linen and isinstance(made, linen.Module):
        args, kwargs = inputs
        variables = made.init(jax.random.key(seed), *args, **kwargs)
        if trains and variables.keys() - {"params"}:
            raise Unsupported(STATEFUL)
        return function(made.apply, variables, takes_them=True), "flax.linen, initialised from the seed", removed
    if not callable(made):
        raise Fault(
            f"model() returned {type(made).__name__}: return (function, parameters), a Flax module, or a function."
        )
    if not jax.tree_util.all_leaves([made]):
        return function(made, made, itself=True), "a pytree that is called", removed
    applied = function(made)
    held = "a function and the arrays it closes over" if applied.places.values() else "a function without parameters"
    return applied, held, removed


def _without_jit(module: Any) -> Iterator[str]:
    """Put back each method of a module's classes that nnx.jit or jax.jit wrapped; yield their names."""
    kinds = {kind for _, node in nnx.iter_graph(module) if isinstance(node, nnx.Module) for kind in type(node).__mro__}
    for kind in sorted(kinds, key=lambda kind: kind.__qualname__):
        for name, value in list(vars(kind).items()):
            original = uncompiled(value)
            if original is not value:
                setattr(kind, name, original)
                yield f"{kind.__name__}.{name}"


def _register(leaf: Any) -> None:
    """Register the class of a dataclass among the inputs as a pytree, which it is for nobody else."""
    if not dataclasses.is_dataclass(leaf) or isinstance(leaf, type):
        return
    names = [field.name for field in dataclasses.fields(leaf) if field.init]
    jax.tree_util.register_dataclass(type(leaf), data_fields=names, meta_fields=[])
    for name in names:
        for inner in jax.tree.leaves(getattr(leaf, name)):
            if dataclasses.is_dataclass(inner) and jax.tree_util.all_leaves([inner]):
                _register(inner)


def _signature(inputs: Inputs) -> list[tuple[str, str]]:
    """Return the names of an input set's leaves, with what a compilation holds of each."""
    args, kwargs = inputs
    leaves = jax.tree_util.tree_leaves_with_path({**{str(i + 1): a for i, a in enumerate(args)}, **kwargs})
    return [(".".join(map(_key, path)), _held(leaf)) for path, leaf in leaves]


def _held(leaf: Any) -> str:
    if _is_array(leaf):
        return f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"
    return "" if _is_dynamic(leaf) else repr(leaf)[:40]


def _key(key: Any) -> str:
    for name in ("name", "key", "idx"):
        if hasattr(key, name):
            return str(getattr(key, name))
    return str(key)


def _is_array(leaf: Any) -> bool:
    if isinstance(leaf, np.ndarray | np.generic):
        return leaf.dtype.kind in "biufc" or jnp.issubdtype(leaf.dtype, jnp.number)
    return isinstance(leaf, jax.Array)


def _is_key(leaf: Any) -> bool:
    """Say whether a leaf is a random key, typed or, as raw keys are, of two or more whole numbers of 32 bits."""
    if not isinstance(leaf, jax.Array):
        return False
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key) or (
        leaf.dtype == np.uint32 and leaf.shape[-1:] in ((2,), (4,))
    )


def _is_dynamic(leaf: Any) -> bool:
    """Say whether a leaf is an argument of a jitted function: whole numbers and flags choose what is computed."""
    return _is_array(leaf) or type(leaf) in (float, complex)


def _is_object(leaf: Any) -> bool:
    kinds = (jax.Array, np.generic, str, bytes, bool, int, float, complex, type(None))
    return not isinstance(leaf, kinds) and not callable(leaf)
