"""User models in JAX: functions with their parameters or closures, callable pytrees, and Flax modules."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import jaxpr_as_fun

from frameworks import user_file, user_model, values
from frameworks.adapter import Capture, Step, Unsupported
from frameworks.jax import runtime
from frameworks.jax.inspect import program
from frameworks.jax.user_model.captured import LARGE, Reached, compiled, constants
from frameworks.program import PRODUCTS, Operation, product_dtypes
from frameworks.user_model import Call, Counted, Inputs, Uncounted
from frameworks.values import Rules, Values
from measurement.cells import Cell
from workloads.user_model import UserModel

try:
    from flax import linen, nnx
except ImportError:
    linen = nnx = None

STATEFUL = (
    "a model with other state than parameters (running statistics, random streams) cannot be trained: return "
    "(function, parameters) from model()."
)
BY = "XLA's cost analysis of the lowered module, before it is optimised"
# Keywords that Linen takes in `apply`, and in `init` with another meaning.
OF_APPLY = ("rngs", "mutable", "capture_intermediates")
# Primitives that read a part of their first operand, as large as their result.
PARTIAL = ("gather", "slice", "dynamic_slice")
# Share of a call's FLOPs by which its branches may differ: less than the error of the times they are divided by.
MOST_DOUBT = 0.01
# Calls in StableHLO that compute nothing, or that XLA decomposes.
COUNTED_CALLS = ("Sharding", "SPMD", "annotate_device_placement", "mhlo.", "chlo.", "LayoutConstraint")


class JaxRules(Rules):
    """Arrays of JAX, and the children of registered pytrees."""

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
    def from_tree(cls, tree: Any, is_dynamic: Callable[[Any], bool] | None = None) -> Any:
        """Return a tree as jit takes it: itself where nothing in it is static."""
        leaves, form = jax.tree.flatten(tree)
        dynamic = list(map(is_dynamic or _is_dynamic, leaves))
        if all(dynamic):
            return tree
        static = tuple(None if kept else Static(leaf) for leaf, kept in zip(leaves, dynamic, strict=True))
        return cls([leaf for leaf, kept in zip(leaves, dynamic, strict=True) if kept], (form, static))

    @classmethod
    def from_parameters(cls, tree: Any) -> Any:
        """Return parameters as jit takes them: a number among them belongs to the code, as a dropout rate does."""
        return cls.from_tree(tree, _is_array)

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
        # What equals itself alone, as a configuration may, is compared by its attributes: calls may be given copies.
        # An object without attributes, such as NumPy's seeds, equals itself alone.
        by_identity = _is_object(value) and type(value).__eq__ is object.__eq__
        self._attributes = values.attributes(value) if by_identity else {}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Static) or type(self.value) is not type(other.value):
            return False
        mine, others = self._attributes, other._attributes
        if mine and mine.keys() == others.keys() and all(_equal(value, others[name]) for name, value in mine.items()):
            return True
        return _equal(self.value, other.value)

    def __hash__(self) -> int:
        try:
            return hash(type(self.value) if self._attributes else self.value)
        except TypeError:
            return hash(type(self.value))


class Applied:
    """How a model is called with its parameters: those it was given, and the arrays that its code reaches otherwise.

    Where a call `writes` to them, `pure` returns those after it, too. `drops`: a graph computes less than a call, which
    keeps more in containers and attributes than it returns.
    """

    def __init__(self, reached: Reached, given: Any, called: Callable[[Any], Callable]):
        self.reached, self._given, self._called = reached, given, called
        self.writes, self.drops, self.constants = False, False, ""
        self._differentiates = False  # then what a call writes to the parameters it is given is lost, as under jax.grad
        self._exchanged: Callable[[Any], bool] = lambda _: True
        self.compiled: list[str] = []  # the compiled functions that a call runs, which no place holds

    @property
    def params(self) -> tuple[Any, list[Any]]:
        return self._given, self.reached.arrays

    def settle(self, inputs: Inputs, cast: Callable[[Any], Any], trains: bool) -> Exception | None:
        """Choose as parameters the values that the model can be traced with; return why there are none, if so.

        Find the values that a call writes to, holds and compiles. Code of NumPy needs NumPy's arrays, and whole numbers
        may be needed while it is traced.
        """
        self._differentiates = trains
        failed, last = "", None
        for wanted in (lambda _: True, _is_floating, lambda array: _is_floating(array) and _is_jax(array), None):
            self.reached.only(lambda array, wanted=wanted: bool(wanted) and self._exchanged(array) and wanted(array))
            try:
                arguments = Partitioned.from_parameters(cast(self.params)), Partitioned.from_tree(inputs)
                traced, (results, _) = jax.make_jaxpr(self._traced, return_shape=True)(*arguments)
            except Exception as error:
                self.writes, failed, last = False, f", for {type(error).__name__} where they are arguments", error
                continue
            self.drops = program.drops(traced, len(results))
            self.compiled = compiled((equation.primitive.name, equation.params) for equation in traced.eqns)
            kept = ", ".join(constants(traced))
            self.constants = (kept or "some arrays") + failed if kept or failed else ""
            return None
        self.reached.only(self._exchanged)
        return last

    def exchange(self, wanted: Callable[[Any], bool]) -> None:
        """Exchange only the arrays that are wanted, and leave others in place."""
        self._exchanged = wanted
        self.reached.only(wanted)

    def bind(self, params: Any) -> Callable:
        """Return the function that the user calls, with these parameters from now on."""
        given, arrays = params
        self.reached.put(arrays)
        return self._called(_copied(given))

    def pure(self, params: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Call it with parameters, and restore the old ones."""
        given, arrays = _copied(params[0]), params[1]
        with self.reached.holding(arrays):
            callee = self._called(given)
            output = callee(*args, **kwargs)
            return (output, self._after(callee, given, params)) if self.writes else output

    def release(self) -> None:
        """Restore the first values of the user's code."""
        self.reached.restore()

    def _after(self, callee: Callable, given: Any, params: Any) -> Any:
        """Return the parameters after a call that may have written to copies of their containers, `given`."""
        first, arrays = params
        if _is_module(callee):
            given = nnx.state(callee)
        elif self._differentiates:
            given = first
        return given if _form(given) == _form(first) else first, self.reached.after(arrays)

    def _traced(self, params: Any, inputs: Any) -> tuple[list[Any], list[Any]]:
        """Return a graph's results, and other values that a call leaves in inputs, parameters and the user's code."""
        params, (args, kwargs) = Partitioned.joined(params), Partitioned.joined(inputs)
        given, arrays = _copied(params[0]), params[1]
        before = jax.tree.leaves(params)
        known = {id(leaf) for leaf in jax.tree.leaves((before, args, kwargs))}
        with self.reached.holding(arrays):
            callee = self._called(given)
            output = callee(*args, **kwargs)
            after = jax.tree.leaves(self._after(callee, given, params))
            left = jax.tree.leaves((args, kwargs, given, self.reached.contents()))
            self.reached.omit_unchanged()
        self.writes = len(before) != len(after) or any(a is not b for a, b in zip(before, after, strict=True))
        results = list(filter(_is_array, jax.tree.leaves((output, after if self.writes else ()))))
        return results, [leaf for leaf in left if isinstance(leaf, jax.core.Tracer) and id(leaf) not in known]


class Model(user_model.UserModel):
    """A user's model in the cell's dtype on its device."""

    rules, compiler, arrays_change = JaxRules(), "jit", False
    wanted = "(function, parameters), a Flax module with __call__, or a function"

    def opened(self, workload: UserModel) -> user_file.UserFile:
        if not workload.is_file:
            raise Unsupported(f"{workload.name} is not a JAX model: write a model file.")
        with runtime.keeping_cache():
            return user_file.UserFile(workload.source)

    @staticmethod
    def fits(made: Any) -> bool:
        return user_file.can_be_called(made[0] if _is_pair(made) else made)

    def built(self, made: Any) -> Any:
        """Return the parameters."""
        with self.naming_inputs():  # Flax makes parameters in a call
            self.applied, self.detail = _applied(made, self.sets[0], self.seed_of_weights, self.trains)
        self.settings["called as"] = self.detail
        return self._on_device(self.applied.params)

    def settle(self) -> None:
        try:
            self._settle_eager()  # before anything is traced: the model may keep what it makes in its first call
            if error := self.applied.settle(self.fresh(self.sets[0]), self._on_device, self.trains):
                words = user_file.in_a_line(error)
                place = user_file.place_of(error, self.source)
                self.settings["cannot be traced"] = f"{words} ({place})" if place else words
            self.module = self._on_device(self.applied.params)
            self.restore()
            # A trace has the contents of functions under jit with inline=True, which eager mode compiles as well.
            # Early checks have refused them before starts are measured.
            dispatched = () if self.adapter.starts else self._dispatched() or ()
            if functions := self.applied.compiled or compiled(dispatched):
                name = user_file.without_folders(functions[0], self.source)
                raise Unsupported(
                    f"the model calls {name}, so its eager mode would run a graph: call the original function, such as "
                    f"its __wrapped__."
                )
            if self.trains and self.applied.writes:
                raise Unsupported(STATEFUL)
        except BaseException:
            self.release()
            raise
        if self.applied.constants:
            self.settings["held as constants"] = self.applied.constants
        self.removed = self.applied.reached.removed

    def _dispatched(self) -> list[program.Primitive] | None:
        """Return the primitives that a call dispatches in eager mode; None where they are not known."""
        self.seed(0)
        try:
            return program.dispatched(self.applied.pure, (self.module, *self.fresh(self.sets[0])))
        except Exception:
            return None
        finally:
            self.restore()

    def _computations(self) -> dict[str, int] | None:
        """Return how often a call dispatches primitives and jitted functions that compute; None if not known."""
        if (dispatched := self._dispatched()) is None:
            return None
        moves = (*program.TRANSFERS, *program.RENAMES, "transpose")
        return {name: count for name, count in program.names(dispatched).items() if name.strip("_") not in moves}

    def _settle_eager(self) -> None:
        """Call the model once; on the user's own arrays of NumPy where JAX's in their places change what it computes.

        Code of NumPy would fail, or run in JAX, operator by operator. Weights are exchanged unless the call fails.
        """
        self.restore()
        failed: Exception | None = None
        try:
            super().settle()
        except Exception as error:
            failed = error
        wanted = _is_jax if failed else _is_weight
        if all(map(wanted, self.applied.reached.arrays)):
            if failed:
                raise failed
            return
        computed = None if failed else self._computations()
        self._exchange(wanted)
        if not failed and (computed is None or self._computations() in (computed, None)):
            self._exchange(lambda _: True)
            return
        try:
            super().settle()
        except Exception as error:
            raise failed or error from None

    def _exchange(self, wanted: Callable[[Any], bool]) -> None:
        self.applied.exchange(wanted)
        self.module = self._on_device(self.applied.params)
        self.restore()

    def seed(self, seed: int) -> None:
        user_file.seed_python(seed)

    def cast(self, inputs: Inputs, dtype: str) -> Inputs:
        for leaf in jax.tree.leaves(inputs):
            _register(leaf)
        return cast(inputs, jnp.dtype(dtype), self.adapter.device)

    def fresh(self, inputs: Inputs) -> Inputs:
        # Arrays of JAX are never written to; containers are made again.
        copies: dict[int, Any] = {}
        return jax.tree.map(lambda leaf: copy.deepcopy(leaf, copies) if _is_object(leaf) else leaf, inputs)

    def call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        return self.bound(*args, **kwargs)

    def restore(self) -> None:
        self.bound = self.applied.bind(self.module)

    def by_default(self, dtype: str) -> contextlib.AbstractContextManager:
        return jax.enable_x64(dtype == "float64" or bool(jax.config.jax_enable_x64))

    def copied(self, dtype: str) -> Any:
        return cast(self.module, jnp.dtype(dtype))

    def with_own_integers(self, calls: int) -> list[Values] | None:
        def prepared(inputs: Inputs) -> Inputs:
            with self.by_default("float64"):
                return self.cast(self.fresh(inputs), "float64")

        with contextlib.suppress(Exception):  # of versions in which arrays do not stay in float64
            with self.by_default("float64"):
                model = self.copied("float64")
            outputs = self._in_turn(self.calling(model), calls, prepared)
            floating = [a for found in outputs for a in found.arrays.values() if a.dtype.kind == "f"]
            return outputs if all(array.dtype == np.float64 for array in floating) else None
        return None

    def operators(self, inputs: Inputs) -> Any:
        return program.executed(self.applied.pure, (self.module, *inputs))

    def operators_after_others(self, inputs: Inputs) -> Any:
        return self.operators_in_turn(inputs)  # `restore` empties the user's dicts, as a timed call does not

    def operators_in_turn(self, inputs: Inputs) -> Any:
        return program.executed(self.call, inputs)

    def listed_later(self) -> Any:
        """Return the operators of a call that finds what the first one left, as timed calls do."""
        if self.applied.writes:  # the graph is given that state
            return self.listed

        def first() -> None:
            self.restore()
            self.call(*self.fresh(self.sets[0]))

        try:
            return program.executed(self.call, self.fresh(self.sets[0]), first)
        finally:
            self.restore()

    def shared_bytes(self) -> int:
        """Return the bytes of weights and input sets, which all modes use."""
        arrays = {id(leaf): leaf for leaf in jax.tree.leaves((self.module, self.sets)) if _is_jax(leaf)}.values()
        return sum(array.nbytes for array in arrays)

    def calling(self, model: Any) -> Call:
        bound = functools.cache(partial(self.applied.bind, model))  # until the state is restored
        return lambda args, kwargs: bound()(*args, **kwargs)

    def release(self) -> None:
        """Restore the first values of the user's functions."""
        self.applied.release()

    def forward(self, params: Any, inputs: Any) -> Any:
        """Return the output from jit's arguments, and the state after it where a call writes to it."""
        found = self.applied.pure(Partitioned.joined(params), *Partitioned.joined(inputs))
        if not self.applied.writes:
            return found
        output, state = found
        return output, Partitioned.from_parameters(state)

    def arguments(self) -> tuple:
        """Return the arguments of jit in the first call."""
        return Partitioned.from_parameters(self.module), Partitioned.from_tree(self.sets[0])

    def cost(self) -> Counted | None:
        return counted(self.forward, *self.arguments())

    def computes_in(self) -> Sequence[str]:
        products = [operation for operation in self.listed or () if operation.kind in PRODUCTS]
        return product_dtypes([replace(operation, arguments={"dtype": _widest(operation)}) for operation in products])

    def _on_device(self, tree: Any) -> Any:
        return cast(tree, jnp.dtype(self.dtype), self.adapter.device)


class Jitted:
    """A call of a model's graph, which holds its state where a call writes to it.

    Raises Unsupported where the graph would not fill the inputs as a call does.
    """

    def __init__(self, model: Model, graph: Callable):
        if model.keeps:
            raise Unsupported(model.not_written("jit"))
        self._model, self._graph, self._writes = model, graph, model.applied.writes
        self._first = self._params = Partitioned.from_parameters(model.module)
        # Inputs that were made for one call are partitioned within it.
        self._known: dict[tuple[int, int], Any] = {}
        self._sets: list[Inputs] = []  # so that no identity above is given to another object
        for inputs in model.sets:
            self.keep(inputs)

    def keep(self, inputs: Inputs) -> None:
        """Partition an input set before the call with it."""
        self._known[identity(*inputs)] = Partitioned.from_tree(inputs)
        self._sets.append(inputs)

    def __call__(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        output = self._graph(
            self._params, self._known.get(identity(args, kwargs)) or Partitioned.from_tree((args, kwargs))
        )
        if self._writes:
            output, self._params = output
        return output

    def restore(self) -> None:
        self._params = self._first
        self._model.restore()


def prepare(model: Model, cell: Cell) -> Step:
    """Return the step of the model in the cell's mode."""
    arguments = model.arguments()
    call, capture = model.adapter.compilations.callable(cell, model.forward, arguments, model.detail)
    if cell.mode == "eager":
        return Step(model.call, model.sets, capture, model.restore, model.listed_later, user_model=model)
    refuse_what_is_held(model)
    step = Jitted(model, call)
    listed = partial(program.captured, call, runtime.shapes(arguments), pruned=model.applied.drops)
    captured = lambda: with_recompilations(capture(), model)  # noqa: E731
    return Step(step, model.sets, captured, step.restore, listed, user_model=model)


def identity(args: tuple, kwargs: dict[str, Any]) -> tuple[int, int]:
    """Return the identity of a kept input set, two ids; all empty tuples are one object."""
    return id(args), id(kwargs)


def refuse_what_is_held(model: Model) -> None:
    """Raise Unsupported for inputs with an object whose arrays jit would not be given."""
    for leaf in jax.tree.leaves(model.sets):
        if _is_object(leaf) and any(map(_is_hidden, values.walk(leaf, values.held))):
            raise Unsupported(
                f"a {type(leaf).__name__} in the inputs contains arrays that jit cannot see: register it with "
                f"jax.tree_util."
            )


def with_recompilations(captured: Capture, model: Model) -> Capture:
    """Return the capture with the compilations after the first, and the differences of their inputs."""
    again = min(captured.graphs or 0, captured.compilations or 0) - 1
    if again < 1:
        return captured
    form = "state of another form" if model.applied.writes else "inputs of another form"
    reason = "; ".join(user_model.other_forms(map(_signature, model.sets))) or form
    return replace(captured, recompilations=again, recompiled=((Path(model.source).name, reason),))


def counted(function: Callable, *arguments: Any) -> Counted | None:
    """Return XLA's cost of a call before fusion; None where it lacks a rule for a part. Raises Uncounted."""
    traced = jax.jit(function).trace(*arguments)
    lowered = traced.lower()
    calls = re.findall(r"custom_call @([\w.]+)", lowered.as_text())
    found = lowered.cost_analysis() or {}
    if found.get("flops", -1) < 0 or not all(name.startswith(COUNTED_CALLS) for name in calls):
        return None
    once = _moved(traced.jaxpr, arguments)
    flops, moved, transcendentals, doubt = _costs(found, once) + _of_loops(traced.jaxpr)
    if doubt > MOST_DOUBT * flops:
        raise Uncounted.naming(["cond"])
    return Counted(int(flops), once, max(int(moved), 0), BY, max(int(transcendentals), 0))


def _costs(found: Mapping[str, float], moved: int = 0) -> np.ndarray:
    """Return the FLOPs, bytes and transcendentals of XLA's cost analysis, and the FLOPs that are in doubt, none."""
    return np.array([found.get("flops", 0), found.get("bytes accessed", moved), found.get("transcendentals", 0), 0])


def _of_loops(jaxpr: Any) -> np.ndarray:
    """Return the costs of loops that XLA's analysis lacks, which counts their bodies as often as the module holds them.

    Of branches it takes the dearest; the FLOPs by which they differ are in doubt.
    Raises Uncounted for a loop whose length values decide, and for loops and branches that need a mesh.
    """
    total = np.zeros(4)
    for equation in jaxpr.eqns:
        name, inner = equation.primitive.name, list(program.inner(equation.params))
        if name == "scan":
            (body,) = inner
            length = equation.params["length"]
            unrolled = equation.params["unroll"] or length or 1
            held = min(length, unrolled + length % unrolled)
            total += length * _cost(body) - held * _cost(body, repeated=False)
        elif name == "cond":
            costs = np.array([_cost(branch) for branch in inner])
            total += costs.max(0) - np.max([_cost(branch, repeated=False) for branch in inner], 0)
            total[3] += np.ptp(costs[:, 0])
        elif name == "while" or (name == "shard_map" and any(map(_repeats, inner))):
            raise Uncounted.naming([name])
        else:
            total += sum(map(_of_loops, inner), np.zeros(4))
    return total


def _repeats(jaxpr: Any) -> bool:
    """Return whether a jaxpr holds loops or branches, whose bodies are lowered alone."""
    named = any(equation.primitive.name in ("scan", "while", "cond") for equation in jaxpr.eqns)
    return named or any(_repeats(inner) for equation in jaxpr.eqns for inner in program.inner(equation.params))


def _cost(body: Any, repeated: bool = True) -> np.ndarray:
    """Return the costs of a closed jaxpr, with its loops `repeated` or counted as the module holds them."""
    once = _costs(jax.jit(jaxpr_as_fun(body)).lower(*body.in_avals).cost_analysis() or {})
    return once + _of_loops(body) if repeated else once


def _moved(jaxpr: Any, arguments: Any) -> int:
    """Return the bytes that a call must move: what it reads of arguments and constants, each once, and results."""
    read, seen = _read(jaxpr.jaxpr), {}
    leaves = [*zip(jax.tree.leaves(arguments), jaxpr.jaxpr.invars, strict=True)]
    for leaf, variable in (*leaves, *zip(jaxpr.consts, jaxpr.jaxpr.constvars, strict=True)):
        array = leaf if hasattr(leaf, "shape") else variable.aval
        seen[id(array)] = array, seen.get(id(array), (array, 0))[1] + read.get(id(variable), 0)
    return sum(min(_nbytes(array), needed) for array, needed in seen.values()) + sum(map(_nbytes, jaxpr.out_avals))


def _read(jaxpr: Any) -> dict[int, int]:
    """Return the bytes that a jaxpr reads of each variable, by identity; of a table that it only gathers, the rows."""
    read = {id(variable): _nbytes(variable.aval) for variable in jaxpr.outvars}
    for equation in jaxpr.eqns:
        inner = equation.params.get("jaxpr", equation.params.get("call_jaxpr"))
        inner = None if equation.primitive.name == "scan" else getattr(inner, "jaxpr", inner)  # which repeats it
        shapes = [variable.aval.shape for variable in equation.invars]
        needed = [_nbytes(variable.aval) for variable in equation.invars]
        if equation.primitive.name in PARTIAL:
            needed[0] = sum(_nbytes(result.aval) for result in equation.outvars)
        elif inner is not None and [variable.aval.shape for variable in inner.invars] == shapes:
            within = _read(inner)
            needed = [within.get(id(variable), 0) for variable in inner.invars]
        for variable, more in zip(equation.invars, needed, strict=True):
            read[id(variable)] = min(read.get(id(variable), 0) + more, _nbytes(variable.aval))
    return read


def _nbytes(array: Any) -> int:
    return int(np.prod(array.shape)) * array.dtype.itemsize


def cast(tree: Any, dtype: np.dtype, device: jax.Device | None = None) -> Any:
    """Return a tree with its arrays as JAX's: floating point in a dtype, complex numbers in the type of that width.

    An array that is held twice stays one. Values of one byte or less stay: code computes with their scales.
    """
    made: dict[int, Any] = {}

    def one(leaf: Any) -> Any:
        if not _is_array(leaf):
            return leaf
        if id(leaf) not in made:
            kind = None
            if jnp.issubdtype(leaf.dtype, jnp.floating):
                kind = dtype if leaf.dtype.itemsize > 1 else None
            elif jnp.issubdtype(leaf.dtype, jnp.complexfloating):
                kind = np.dtype(np.complex128 if dtype == np.float64 else np.complex64)
            array = leaf if _is_jax(leaf) and (kind is None or kind == leaf.dtype) else jnp.asarray(leaf, kind)
            made[id(leaf)] = array if device is None else jax.device_put(array, device)
        return made[id(leaf)]

    return jax.tree.map(one, tree)


def _applied(made: Any, inputs: Inputs, seed: int, trains: bool) -> tuple[Applied, str]:
    """Return a function that calls the result of `model()` with parameters, and its kind as text."""
    reached = Reached()
    if not trains and not _is_module(made):
        _evaluate(made)
    if _is_pair(made):
        return _with_parameters(reached, *made), "a function and its parameters"
    if _is_module(made):
        (nnx.Module.train if trains else nnx.Module.eval)(made)  # a class may have methods of these names
        if trains and jax.tree.leaves(nnx.state(made, nnx.Not(nnx.Param))):
            raise Unsupported(STATEFUL)
        for _, node in nnx.iter_graph(made):
            reached.walk(node)
        reached.put(reached.arrays)
        graph, state = nnx.split(made)
        reached.restore()
        # NNX writes to variables only where they were made: inside the traced function.
        return Applied(reached, state, partial(nnx.merge, graph)), "flax.nnx, split and merged"
    if linen and isinstance(made, linen.Module):
        detail = "flax.linen, initialised from the seed"
        if made.scope is not None:
            detail = "flax.linen, bound to its variables"
            made, variables = made.unbind()
        else:
            args, kwargs = inputs
            variables = made.init(jax.random.key(seed), *args, **{k: v for k, v in kwargs.items() if k not in OF_APPLY})
        if trains and variables.keys() - {"params"}:
            raise Unsupported(STATEFUL)
        return _with_parameters(reached, made.apply, variables), detail
    callee = reached.plain(made)
    if not jax.tree_util.all_leaves([callee]):
        return Applied(reached, callee, lambda given: given), "a callable pytree"
    detail = f"a function {'and the arrays it reaches' if reached.arrays else 'without parameters'}"
    return Applied(reached, None, lambda _: callee), detail


def _evaluate(made: Any) -> None:
    """Put all Flax NNX modules that the result of `model()` reaches into inference mode, before their form is read."""
    reached = Reached()
    reached.plain(made)
    is_module = lambda value: isinstance(value, nnx.Module)  # noqa: E731
    for module in filter(is_module, jax.tree.leaves(reached.values, is_leaf=is_module) if nnx else ()):
        nnx.Module.eval(module)  # a class may have a method of that name


def _is_pair(made: Any) -> bool:
    return type(made) is tuple and len(made) == 2  # a class may derive from tuple and be called itself


def _with_parameters(reached: Reached, function: Callable, params: Any) -> Applied:
    function, params = reached.plain((function, params))
    if jax.tree_util.all_leaves([function]):  # static values cost time in every call
        return Applied(reached, params, lambda given: partial(function, given))
    return Applied(reached, (function, params), lambda given: partial(*given))


def _register(leaf: Any) -> None:
    """Register the class of a dataclass among the inputs as a pytree; nothing else does."""
    if not dataclasses.is_dataclass(leaf) or isinstance(leaf, type) or _holds_itself(leaf):
        return
    if isinstance(leaf, dict) and jax.tree_util.all_leaves([leaf]):  # whose items `__init__` fills, as transformers'
        names = [field.name for field in dataclasses.fields(leaf) if field.init]
        jax.tree_util.register_dataclass(type(leaf), data_fields=names, meta_fields=[])
    elif jax.tree_util.all_leaves([leaf]):
        unflatten = partial(_unflattened, type(leaf))
        jax.tree_util.register_pytree_with_keys(type(leaf), _with_keys, unflatten)
    for child, _ in zip(*_children(leaf), strict=True):
        for inner in jax.tree.leaves(child):
            if dataclasses.is_dataclass(inner) and jax.tree_util.all_leaves([inner]):
                _register(inner)


def _holds_itself(value: Any, within: tuple[int, ...] = ()) -> bool:
    """Return whether a value or one in it reaches itself, as by a reference to a parent, which no pytree can."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = _children(value)[0]
    elif isinstance(value, list | tuple | dict):
        parts = list(value.values() if isinstance(value, dict) else value)
    else:
        return False
    return id(value) in within or any(_holds_itself(part, (*within, id(value))) for part in parts)


def _children(made: Any) -> tuple[list[Any], tuple[str, ...]]:
    """Return an object's attributes and their names, without what a cached property keeps."""
    held = values.attributes(made)
    kind = type(made)
    names = tuple(name for name in held if not isinstance(getattr(kind, name, None), functools.cached_property))
    return [held[name] for name in names], names


def _with_keys(made: Any) -> tuple[list[tuple[Any, Any]], tuple[str, ...]]:
    children, names = _children(made)
    return [(jax.tree_util.GetAttrKey(name), child) for name, child in zip(names, children, strict=True)], names


def _unflattened(kind: type, names: tuple[str, ...], children: Sequence[Any]) -> Any:
    """Return an object with these attributes; `__init__` would compute them again."""
    made = kind.__new__(kind)
    for name, child in zip(names, children, strict=True):
        object.__setattr__(made, name, child)
    return made


def _signature(inputs: Inputs) -> dict[str, tuple[str, str]]:
    """Return the properties that a compilation depends on, by the name of each leaf of an input set."""
    leaves = jax.tree_util.tree_leaves_with_path(user_model.named_arguments(inputs))
    return {".".join(map(_key, path)): (_held(leaf), _held(leaf)) for path, leaf in leaves}


def _held(leaf: Any) -> str:
    if _is_array(leaf):
        return f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]"
    return "" if _is_dynamic(leaf) else repr(leaf)[:40]


def _key(key: Any) -> str:
    for name in ("name", "key", "idx"):
        if hasattr(key, name):
            return str(getattr(key, name))
    return str(key)


def _widest(product: Operation) -> str:
    """Return the dtype in which a product is computed: that of its widest operand."""
    dtypes = [text.partition(" ")[0] for name, text in product.arguments.items() if name in ("operand 0", "operand 1")]
    return max(dtypes, key=lambda name: jnp.dtype(name).itemsize, default="")


def _form(params: Any) -> Any:
    """Return the structure of parameters, with the values that are no arguments of jit."""
    return jax.tree.structure(Partitioned.from_parameters(params))


def _copied(tree: Any) -> Any:
    """Return a tree with copied containers."""
    return jax.tree.map(lambda leaf: leaf, tree)


def _is_module(value: Any) -> bool:
    return bool(nnx) and isinstance(value, nnx.Module)


def _is_jax(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array)


def _is_weight(leaf: Any) -> bool:
    return _is_jax(leaf) or (_is_floating(leaf) and np.size(leaf) >= LARGE)


def _is_floating(leaf: Any) -> bool:
    return bool(jnp.issubdtype(leaf.dtype, jnp.inexact))


def _is_array(leaf: Any) -> bool:
    if isinstance(leaf, np.ndarray | np.generic):
        return leaf.dtype.kind in "biufc" or jnp.issubdtype(leaf.dtype, jnp.number)
    return isinstance(leaf, jax.Array)


def _is_dynamic(leaf: Any) -> bool:
    """Return whether a leaf is an argument of a jitted function; integers and flags choose its operators instead."""
    return _is_array(leaf) or type(leaf) in (float, complex)


def _is_hidden(value: Any) -> bool:
    """Return whether a value in an object is an array; numbers and names may be constants of a graph."""
    return isinstance(value, np.ndarray | jax.Array) and _is_array(value)


def _equal(one: Any, other: Any) -> bool:
    """Return whether a compilation with one value serves the other; not where Python cannot compare them."""
    if one is other:
        return True
    try:
        if isinstance(one, np.ndarray):
            return one.dtype == other.dtype and np.array_equal(one, other)
        return type(one) is type(other) and bool(np.all(one == other))
    except Exception:
        return False


def _is_object(leaf: Any) -> bool:
    kinds = (jax.Array, np.generic, str, bytes, bool, int, float, complex, type(None))
    return not isinstance(leaf, kinds) and not callable(leaf)
