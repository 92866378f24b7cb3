"""Ways of PyTorch to serve calls of different lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from frameworks.adapter import Unsupported
from frameworks.stream import Counts, Place, Server
from frameworks.torch import FRAMEWORK
from frameworks.torch.modes import graphs
from frameworks.torch.user_model import graph_breaks

LACKING = {"polymorphic": "measure STRATEGY=dynamic,marked"}
DYNAMIC = {"automatic": None, "dynamic": True}  # `dynamic` of torch.compile; other strategies pass False


class Eager(Server):
    """Operator by operator."""

    def flatten(self, inputs: tuple) -> tuple[list[Any], Callable[[list[Any]], tuple]]:
        leaves, form = pytree.tree_flatten(inputs)
        return leaves, lambda made: pytree.tree_unflatten(made, form)

    def extended(self, leaf: Any, axis: int, by: int, value: float) -> Any:
        shape = list(leaf.shape)
        shape[axis] = by
        longer = torch.cat([leaf.detach(), leaf.new_full(shape, value)], axis)
        return longer.requires_grad_(leaf.requires_grad)  # a leaf again: backward leaves gradients in it

    def device_bytes(self) -> int | None:
        device = self.place.adapter.device
        return torch.cuda.memory_reserved(device) if device.type == "cuda" else None


class Compiled(Eager):
    """torch.compile as users call it: graph breaks and its limit of recompilations end in eager mode."""

    def __init__(self, place: Place):
        super().__init__(place)
        mode = "inductor-reduce-overhead" if place.strategy.cuda_graphs else "inductor"
        if problem := graphs.missing_toolchain(mode, place.adapter.device):
            raise Unsupported(problem)
        self.backend = graphs.OnlyBackend(mode, place.adapter.device)
        self._counters = graphs.internal("torch._dynamo.utils", "counters")
        self._spent = graphs.internal("torch._dynamo.utils", "calculate_time_spent")
        own = place.step.user_model
        self._around = own.autograd if own else torch.inference_mode
        model = own.module if own else place.adapter.model(place.workload, place.cell, place.weights)
        dynamic = DYNAMIC.get(place.strategy.name.removesuffix("-cuda-graphs"), False)
        self._compiled = torch.compile(model, backend=self.backend, fullgraph=False, dynamic=dynamic)
        self._own = own is not None
        self._limits = graph_breaks.Limits.followed()
        self._at_first: int | None = None  # what torch gave up in the first call

    def __call__(self, inputs: tuple) -> Any:
        self.backend.ran = False
        try:
            with self._around():
                output = self._compiled(*inputs[0], **inputs[1]) if self._own else self._compiled(*inputs)
        except Exception as error:
            self.refuse(error)
            raise
        graphs.refuse_without_graph(self.backend.compiled)
        # What torch gives up in the first call already is no matter of lengths.
        self._at_first = self._limits.count if self._at_first is None else self._at_first
        self.ran_graph = self.backend.ran and self._limits.count == self._at_first
        return output

    @property
    def is_partial(self) -> bool:
        return bool(graphs.count_breaks() or self._at_first)

    def refuse(self, error: Exception) -> None:
        """Raise Unsupported for an error of a call that the strategy does not allow."""

    def counts(self) -> Counts:
        spent = self._spent()
        return Counts(
            self.backend.compiled,
            self._counters["stats"]["unique_graphs"],
            self.backend.recorded,
            spent["total_wall_time"],
        )


class Marked(Compiled):
    """torch.compile after torch._dynamo.mark_dynamic of the axes of lengths and batch sizes, with their bounds.

    torch specialises on a size of 1, which cannot be marked.
    """

    def refuse(self, error: Exception) -> None:
        from torch.fx.experimental.symbolic_shapes import ConstraintViolationError  # imports sympy

        if isinstance(error, ConstraintViolationError):
            raise Unsupported(
                "the model does not take every length or batch size between the bounds, or not in one graph, and "
                "mark_dynamic accepts no other condition: measure STRATEGY=dynamic."
            ) from error

    def mark(self, inputs: tuple) -> tuple:
        examples = [self.flatten(example)[0] for example in self.place.examples]
        for number, (leaf, axes) in enumerate(zip(self.flatten(inputs)[0], self.free_axes(), strict=True)):
            for axis in axes:
                sizes = [example[number].shape[axis] for example in examples]
                if leaf.shape[axis] > 1:
                    torch._dynamo.mark_dynamic(leaf, axis, min=max(2, min(sizes)), max=max(sizes))
        return inputs


SERVERS: dict[str, type[Server]] = {
    "eager": Eager,
    **{name: Marked if name.startswith("marked") else Compiled for name in FRAMEWORK.streams},
}
