"""Users' own JAX models: a function with its parameters, a Flax module (NNX or Linen), or a function alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from frameworks import own
from frameworks.adapter import Unsupported
from frameworks.user_file import Counted, Fault
from workloads.own import Own
from workloads.spec import Arrays

STATEFUL = (
    "training of a Flax module with more than parameters (running statistics, random streams) is not run: return "
    "(function, parameters) from model()."
)
BY = "XLA's cost analysis of the lowered module, before it is optimised"


class Model:
    """A user's model in the cell's dtype on its device: `forward(params, *arrays)`, with arrays as `place` returns."""

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
        self.file, self._device, self.dtype = own.UserFile(workload.source), device, dtype
        self._tolerance = max(workload.tolerance.values())
        self._form: Any = None
        self._constants: list[Any] = []
        own.seed_python(int(weights["seed"]))
        made = self.file.call("model")
        self.sets = [self.place(arrays) for arrays in inputs]
        self._apply, params, self.detail = _applied(made, self._called(self.sets[0]), int(weights["seed"]), trains)
        # A module of NNX is put together once where nothing is traced.
        self._bound = getattr(self._apply, "bound", lambda params: partial(self._apply, params))
        self.params = jax.device_put(self.cast(params, dtype), device)

    def place(self, arrays: Arrays) -> tuple[jax.Array, ...]:
        """The arrays of one input set on the device, floating point in the cell's dtype."""
        own.seed_python(int(arrays["seed"]))
        given = own.as_call(self.file.call("inputs", **own.arguments_of(arrays)))
        leaves, self._form = jax.tree.flatten(given)
        self._constants = [None if _is_array(leaf) else (leaf,) for leaf in leaves]
        array_leaves = [leaf for leaf in leaves if _is_array(leaf)]
        if not array_leaves:
            raise Fault("inputs() returned no array: return one, a tuple, or a dict of keywords.")
        return tuple(jax.device_put(self.cast(leaf, self.dtype), self._device) for leaf in array_leaves)

    def forward(self, params: Any, *arrays: jax.Array) -> Any:
        """The model's own output."""
        args, kwargs = self._called(arrays)
        return self._apply(params, *args, **kwargs)

    def eager(self) -> Callable[..., Any]:
        """The model as its user calls it outside of jit, which takes arrays alone."""
        apply = self._bound(self.params)

        def call(*arrays: jax.Array) -> Any:
            args, kwargs = self._called(arrays)
            return apply(*args, **kwargs)

        return call

    def reference(self, calls: int) -> tuple[str, list[dict[str, np.ndarray]]]:
        """Outputs of the first calls op by op, in float64 where the model runs in it."""
        self.refuse_what_changes()
        return self.in_more_precision(
            lambda params, sets, _: [named(self.forward(params, *arrays)) for arrays in sets], calls
        )

    def refuse_what_changes(self) -> None:
        """Raise `Unsupported` for a model whose output two calls on one input do not have in common."""
        output = lambda: named(self.forward(self.params, *self.sets[0]))  # noqa: E731
        if reason := own.problem(output, own.seed_python, self._tolerance):
            raise Unsupported(reason)

    def in_more_precision(self, run: Callable[..., list[dict]], calls: int) -> tuple[str, list[dict[str, np.ndarray]]]:
        """What `run(parameters, input sets, dtype)` gives of the first calls, in the first dtype that it runs in."""
        for dtype in dict.fromkeys((np.dtype(np.float64), np.dtype(np.float32), np.dtype(self.dtype))):
            try:
                with jax.enable_x64(dtype == np.float64):
                    params = self.cast(self.params, dtype)
                    sets = [self.cast(arrays, dtype) for arrays in self.sets[:calls]]
                    return f"its own eager mode in {dtype.name}", run(params, sets, dtype)
            except Exception:  # its own code may insist on a dtype
                continue
        raise Unsupported("the model runs in no dtype on a copy of its parameters, so nothing can be compared with it.")

    def cost(self) -> Counted | None:
        """What XLA says of a call before it fuses."""
        return counted(self.forward, self.params, self.sets[0])

    def _called(self, arrays: Sequence[Any]) -> tuple[tuple, dict]:
        left = iter(arrays)
        return jax.tree.unflatten(self._form, [next(left) if kept is None else kept[0] for kept in self._constants])

    @staticmethod
    def cast(tree: Any, dtype: np.dtype) -> Any:
        """Floating-point leaves in another dtype."""

        def cast(leaf: Any) -> Any:
            floating = _is_array(leaf) and jnp.issubdtype(leaf.dtype, jnp.floating)
            return jnp.asarray(leaf, dtype) if floating else jnp.asarray(leaf) if _is_array(leaf) else leaf

        return jax.tree.map(cast, tree)


def counted(function: Callable, params: Any, inputs: Sequence[jax.Array]) -> Counted | None:
    """What XLA says of `function(params, *inputs)` before it fuses; None where it calls back into Python."""
    lowered = jax.jit(function).lower(params, *inputs)
    told = lowered.cost_analysis() or {}
    held = jax.tree.leaves((params, inputs, lowered.out_info))
    once = sum(int(np.prod(leaf.shape)) * leaf.dtype.itemsize for leaf in held)
    if told.get("flops", -1) < 0:
        return None
    moved, transcendentals = told.get("bytes accessed", once), told.get("transcendentals", 0)
    return Counted(int(told["flops"]), once, max(int(moved), 0), BY, max(int(transcendentals), 0))


class Owned(own.Owned):
    """What a step tells of its user's model."""

    def cost(self) -> Counted | None:
        return self._model.cost()


def named(output: Any) -> dict[str, np.ndarray]:
    """An output's arrays by name, on the host."""
    return {name: _on_host(leaf) for name, leaf in own.named(output, lambda leaf: isinstance(leaf, jax.Array)).items()}


def _on_host(array: jax.Array) -> np.ndarray:
    values = np.asarray(array)
    return values if values.dtype == np.float64 else values.astype(np.float32)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray)


def _applied(made: Any, called: tuple[tuple, dict], seed: int, trains: bool) -> tuple[Callable, Any, str]:
    """How what `model()` returned is called with parameters, the parameters, and what it is."""
    if isinstance(made, tuple) and len(made) == 2 and callable(made[0]):
        return made[0], made[1], "a function and its parameters"
    try:
        from flax import linen, nnx
    except ImportError:
        linen = nnx = None
    if nnx and isinstance(made, nnx.Module):
        (made.train if trains else made.eval)()
        if trains and jax.tree.leaves(nnx.state(made, nnx.Not(nnx.Param))):
            raise Unsupported(STATEFUL)
        graph, state = nnx.split(made)

        def merged(state: Any, *args: Any, **kwargs: Any) -> Any:
            return nnx.merge(graph, state)(*args, **kwargs)

        merged.bound = partial(nnx.merge, graph)
        return merged, state, "flax.nnx, split and merged"
    if linen and isinstance(made, linen.Module):
        args, kwargs = called
        variables = made.init(jax.random.key(seed), *args, **kwargs)
        if trains and variables.keys() - {"params"}:
            raise Unsupported(STATEFUL)
        return made.apply, variables, "flax.linen, initialised from the seed"
    if callable(made):
        return lambda _, *args, **kwargs: made(*args, **kwargs), (), "a function without parameters"
    raise Fault(f"model() returned {type(made).__name__}: return (function, parameters), a Flax module, or a function.")
