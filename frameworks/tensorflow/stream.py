"""Ways of TensorFlow to serve calls of different lengths."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import tensorflow as tf

from frameworks.adapter import Unsupported
from frameworks.stream import Counts, Place, Server
from frameworks.tensorflow import FRAMEWORK
from frameworks.tensorflow.models import build
from frameworks.tensorflow.modes import graphs
from frameworks.tensorflow.user_model import model as user_model

LACKING = {
    "marked": "an input signature has no bounds, so measure STRATEGY=dynamic",
    "polymorphic": "measure STRATEGY=automatic,dynamic",
    "cuda-graphs": "TensorFlow records no CUDA graphs",
}


class Eager(Server):
    """Operator by operator."""

    def flatten(self, inputs: tuple) -> tuple[list[Any], Callable[[list[Any]], tuple]]:
        return tf.nest.flatten(inputs), partial(tf.nest.pack_sequence_as, inputs)

    @property
    def signed(self) -> Any:
        model = self.place.step.user_model.module.model
        return getattr(model, "call", model)

    def extended(self, leaf: Any, axis: int, by: int, value: float) -> Any:
        shape = [by if axis == number else size for number, size in enumerate(leaf.shape)]
        return tf.concat([leaf, tf.cast(tf.fill(shape, value), leaf.dtype)], axis)


class Function(Eager):
    """tf.function, traced for each shape by default; padded calls are compiled by XLA."""

    def __init__(self, place: Place):
        super().__init__(place)
        self._traced = 0
        own, xla = place.step.user_model, bool(place.strategy.pads)
        note = tf.autograph.experimental.do_not_convert(self._note)
        model = own.call if own else build.build(place.workload, place.cell, place.weights)

        def noted(*inputs: Any) -> Any:
            note()
            return model(*inputs)

        if own:
            graph = user_model.graph_of(noted, xla, **self.options())
            self._graph, self._call = graph, partial(user_model.refusing, graph)
        else:
            # Autograph off, as in other graphs: no control flow in these models depends on a tensor.
            self._graph = self._call = tf.function(noted, autograph=False, jit_compile=xla, **self.options())

    def options(self) -> dict[str, Any]:
        """Return further options of tf.function."""
        return {}

    def _note(self) -> None:
        """Count a trace; Python that runs for a call itself runs in place of a graph."""
        if tf.executing_eagerly():
            self.ran_graph = False
        else:
            self._traced += 1

    def __call__(self, inputs: tuple) -> Any:
        self.ran_graph = True
        return self._call(*inputs)

    def refuse_python(self, inputs: tuple) -> None:
        if not tf.config.functions_run_eagerly() and graphs.python_nodes(self._graph.get_concrete_function(*inputs)):
            raise Unsupported(graphs.CALLS_PYTHON)

    def counts(self) -> Counts:
        return Counts(self._traced, self._graph.experimental_get_tracing_count(), seconds=None)


class Automatic(Function):
    """tf.function(reduce_retracing=True), which opens sizes that change."""

    def options(self) -> dict[str, Any]:
        return {"reduce_retracing": True}


class Dynamic(Function):
    """tf.function with an input signature in which sizes that differ are None."""

    def options(self) -> dict[str, Any]:
        leaves, rebuild = self.flatten(self.place.examples[0])
        specifications = []
        for leaf, axes in zip(leaves, self.free_axes(), strict=True):
            if not isinstance(leaf, tf.Tensor):
                raise Unsupported(
                    f"an input signature takes tensors alone, and inputs() gives a {type(leaf).__name__}: measure "
                    "STRATEGY=automatic."
                )
            shape = [None if axis in axes else size for axis, size in enumerate(leaf.shape)]
            specifications.append(tf.TensorSpec(shape, leaf.dtype))
        return {"input_signature": rebuild(specifications)}


SERVERS: dict[str, type[Server]] = {
    "eager": Eager,
    **dict.fromkeys(FRAMEWORK.streams, Function),
    "automatic": Automatic,
    "dynamic": Dynamic,
}
