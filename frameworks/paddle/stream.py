"""Ways of Paddle to serve calls of different lengths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import paddle

from frameworks.paddle import FRAMEWORK
from frameworks.paddle.models import calls
from frameworks.paddle.modes import graphs, inference
from frameworks.paddle.user_model import model as user_model
from frameworks.paddle.user_model import trees
from frameworks.stream import Counts, Place, Server

_OPEN = "measure STRATEGY=dynamic, an InputSpec with None"
LACKING = {
    **dict.fromkeys(("automatic", "marked", "polymorphic"), _OPEN),
    "cuda-graphs": "to_static records no CUDA graphs by itself",
}


class Eager(Server):
    """Operator by operator."""

    def flatten(self, inputs: tuple) -> tuple[list[Any], Callable[[list[Any]], tuple]]:
        def rebuilt(made: list[Any]) -> tuple:
            left = iter(made)
            return trees.changed(inputs, lambda _: next(left))

        return trees.tensors(inputs), rebuilt

    def extended(self, leaf: Any, axis: int, by: int, value: float) -> Any:
        shape = list(leaf.shape)
        shape[axis] = by
        return paddle.concat([leaf, paddle.full(shape, value).astype(leaf.dtype)], axis)


class Captured(Eager):
    """to_static, which captures a program for each shape unless it has a signature."""

    def __init__(self, place: Place):
        super().__init__(place)
        self._captured = 0
        own, cell = place.step.user_model, replace(place.cell, mode="to_static")
        layer = user_model.Called(own.shared()) if own else inference.model_of(place.workload, cell, place.weights)
        static, _, _ = graphs.to_static(layer, cell, self.signature())
        function = static.forward
        self._programs = function.program_cache
        # Not in Paddle's API: how a program is made, and what runs without one.
        self._programs._build_once = self._noting(self._programs._build_once, captures=True)
        function._call_dygraph_function = self._noting(function._call_dygraph_function, captures=False)
        if own:
            self._around, self._call = own.autograd, static
        else:
            self._call = calls.named(calls.without_gradients(static), inference.names_of(place.workload))
        self._own = own is not None

    def signature(self) -> list | None:
        """Return the shapes and types of the inputs; None where each shape is captured."""
        return None

    def _noting(self, function: Callable, captures: bool) -> Callable:
        def noted(*given: Any, **how: Any) -> Any:
            if captures:
                self._captured += 1
            else:
                self.ran_graph = False
            return function(*given, **how)

        return noted

    def mark(self, inputs: tuple) -> tuple:
        return trees.packed(inputs) if self._own else inputs

    def __call__(self, inputs: tuple) -> Any:
        self.ran_graph = True
        if not self._own:
            return self._call(*inputs)
        with self._around():
            return self._call(*inputs)

    def counts(self) -> Counts:
        return Counts(self._captured, len(self._programs), seconds=None)


class Dynamic(Captured):
    """to_static with an InputSpec in which sizes that differ are None."""

    def signature(self) -> list | None:
        leaves, rebuild = self.flatten(self.place.examples[0])
        specifications = []
        for number, (leaf, axes) in enumerate(zip(leaves, self.free_axes(), strict=True)):
            shape = [None if axis in axes else size for axis, size in enumerate(leaf.shape)]
            specifications.append(paddle.static.InputSpec(shape, leaf.dtype, f"input_{number}"))
        return list(trees.packed(rebuild(specifications)))


SERVERS: dict[str, type[Server]] = {
    "eager": Eager,
    **dict.fromkeys(FRAMEWORK.streams, Captured),
    "dynamic": Dynamic,
}
