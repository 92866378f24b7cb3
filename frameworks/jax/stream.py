"""Ways of JAX to serve calls of different lengths."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import export

from frameworks.adapter import DTYPES, Unsupported
from frameworks.jax import FRAMEWORK, runtime
from frameworks.jax.models import build
from frameworks.jax.modes import compiling
from frameworks.jax.modes.graphs import COMPILED
from frameworks.jax.user_model import model as user_model
from frameworks.stream import Counts, Place, Server

TRACED, LOWERED = "/jax/core/compile/jaxpr_trace_duration", "/jax/core/compile/jaxpr_to_mlir_module_duration"
_EACH = "JAX compiles for each shape, so measure STRATEGY=polymorphic"
LACKING = {
    **dict.fromkeys(("automatic", "dynamic", "marked"), _EACH),
    "cuda-graphs": "XLA chooses command buffers itself, in every strategy",
}


class Eager(Server):
    """Operator by operator: each is compiled for each shape."""

    def __init__(self, place: Place):
        super().__init__(place)
        self._compiled, self._seconds = 0, 0.0
        self._traced = 0.0  # the longest trace since the latest lowering: those within it are its own
        jax.monitoring.register_event_duration_secs_listener(self._count)

    def _count(self, event: str, seconds: float, **details: Any) -> None:
        if event == TRACED:
            self._traced = max(self._traced, seconds)
        elif event in (LOWERED, COMPILED):
            self._seconds += seconds + self._traced
            self._traced = 0.0
        if event == COMPILED and self._is_counted(str(details.get("fun_name", ""))):
            self._compiled += 1

    def _is_counted(self, function: str) -> bool:
        return True

    def counts(self) -> Counts:
        return Counts(self._compiled, None, 0, self._seconds)

    def flatten(self, inputs: tuple) -> tuple[list[Any], Callable[[list[Any]], tuple]]:
        leaves, form = jax.tree.flatten(inputs)
        return leaves, lambda made: jax.tree.unflatten(form, made)

    @property
    def signed(self) -> Any:
        return self.place.step.user_model.bound

    def extended(self, leaf: Any, axis: int, by: int, value: float) -> Any:
        shape = [by if axis == number else size for number, size in enumerate(leaf.shape)]
        return jnp.concatenate([leaf, jnp.full(shape, value).astype(leaf.dtype)], axis)


class Jitted(Eager):
    """jax.jit of the whole model, which compiles for each shape that it meets."""

    def __init__(self, place: Place):
        self._name = compiling.name(place.cell)
        super().__init__(place)
        adapter, cell, dtype = place.adapter, place.cell, DTYPES[place.cell.dtype]
        self._own: user_model.Jitted | None = None
        if place.step.user_model is not None:
            model = adapter.user_models[cell.group_id]
            user_model.refuse_what_is_held(model)
            self.params, self.forward = model.arguments()[0], model.forward
            self._own = user_model.Jitted(model, lambda *arguments: self._graph(*arguments))
        else:
            self.params, self.forward, _ = build.build(
                place.workload, cell, place.weights, lambda array: adapter.tensor(array, dtype), jnp.dtype(dtype)
            )
        self._graph = jax.jit(self._named(self.forward))

    def mark(self, inputs: tuple) -> tuple:
        if self._own is not None:
            self._own.keep(inputs)
        return inputs

    def _named(self, function: Any) -> Any:
        def whole_model(*arguments: Any) -> Any:
            return function(*arguments)

        whole_model.__name__ = whole_model.__qualname__ = self._name
        return whole_model

    def _is_counted(self, function: str) -> bool:
        return self._name in function

    def __call__(self, inputs: tuple) -> Any:
        return self._graph(self.params, *inputs) if self._own is None else self._own(*inputs)

    def restore(self) -> None:
        if self._own is not None:
            self._own.restore()

    def refuse_python(self, inputs: tuple) -> None:
        if self._own is not None:
            arguments = self.params, user_model.Partitioned.from_tree(inputs)
            if not runtime.is_whole(jax.jit(self.forward).lower(*arguments).as_text()):
                raise Unsupported(runtime.CALLS_PYTHON)

    def counts(self) -> Counts:
        return Counts(self._compiled, self._graph._cache_size(), 0, self._seconds)


class Polymorphic(Jitted):
    """jax.export with symbolic sizes: traced once; XLA still compiles for each shape.

    Sizes are multiples of the largest number that divides those of all calls, since a model may divide them too.
    """

    def setup(self) -> None:
        used: set[str] = set()
        with runtime.exporting():
            self.shapes(export.SymbolicScope(), used)
            limits = [
                text
                for name, values in self.kinds.items()
                for text in (f"{name} >= {min(values)}", f"{name} <= {max(values)}")
                if name in used  # JAX refuses others
            ]
            shapes = self.shapes(export.SymbolicScope(limits), used)
            exported = export.export(jax.jit(self.forward))(runtime.shapes(self.params), *shapes)
        self._graph = jax.jit(self._named(exported.call))

    @property
    def kinds(self) -> dict[str, list[int]]:
        """The lengths and batch sizes of calls by symbol, in multiples of what divides them all."""
        kinds = {"n": self.place.lengths, "b": self.place.batches}
        return {name: [value // math.gcd(*values) for value in values] for name, values in kinds.items()}

    def shapes(self, scope: export.SymbolicScope, used: set[str]) -> tuple:
        """Return the arguments of the graph with symbolic sizes, and note the symbols among `kinds` that are used."""

        lengths = sorted(set(self.place.lengths))
        between, middle = lengths[len(lengths) // 2], sorted(set(self.kinds["n"]))[len(lengths) // 2]

        def size(name: str, most: int, least: int, other: int) -> Any:
            """Return the size that is `most` in the largest calls, `least` in the smallest, and `other` between."""
            values = self.kinds[name]
            if max(values) == min(values):
                raise Unsupported("inputs() gives other sizes for the same length and batch size.")
            slope, rest = divmod(most - least, max(values) - min(values))
            if rest or (name == "n" and other != slope * middle + most - slope * max(values)):
                return export.symbolic_shape(f"{name}_{most}_{least}", scope=scope)[0]
            used.add(name)
            return slope * export.symbolic_shape(name, scope=scope)[0] + most - slope * max(values)

        def opened(third: Any, first: Any, *rest: Any) -> Any:
            shape = list(jnp.shape(first))
            for name, other in zip(self.kinds, rest, strict=False):
                for axis, least in enumerate(jnp.shape(other)):
                    if least != jnp.shape(first)[axis]:
                        shape[axis] = size(name, jnp.shape(first)[axis], least, jnp.shape(third)[axis])
            return jax.ShapeDtypeStruct(tuple(shape), jnp.result_type(first))

        given = [self.place.call(between), *self.place.examples]
        return jax.tree.map(opened, *((user_model.Partitioned.from_tree(one),) if self._own else one for one in given))


SERVERS: dict[str, type[Server]] = {
    "eager": Eager,
    **{name: Polymorphic if name == "polymorphic" else Jitted for name in FRAMEWORK.streams},
}
