"""Users' own torch models: built from their file, called as they are called, compared with their own eager mode."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from frameworks import own
from frameworks.adapter import Step, Unsupported
from frameworks.own import Counted, Fault
from frameworks.torch import cuda_graph, graphs, hubs, program, segments
from frameworks.torch.counting import count
from measurement.cells import Cell
from workloads.own import Own
from workloads.spec import Arrays


class Model:
    """A user's model on its device in the cell's dtype, which the modes of a group share.

    Where each mode `trains` a copy of it, it stays on the host.
    """

    def __init__(self, workload: Own, weights: Arrays, device: torch.device, dtype: torch.dtype, trains: bool = False):
        self.file = own.UserFile(workload.source) if workload.is_file else hubs.Library(workload.source)
        self.device, self.dtype, self._tolerance = device, dtype, max(workload.tolerance.values())
        self._seed(int(weights["seed"]))
        module = self.file.call("model")
        if not isinstance(module, torch.nn.Module):
            raise Fault(f"model() of {workload.name} returned {type(module).__name__}, which is no torch.nn.Module.")
        self.module = module.train(trains).to(device="cpu" if trains else device, dtype=dtype)
        self._form: Any = None  # how tensors are put together to a call
        self._constants: list[Any] = []
        with torch.no_grad():
            self._buffers = [(buffer, buffer.clone()) for buffer in self.module.buffers()]

    def place(self, arrays: Arrays) -> tuple[torch.Tensor, ...]:
        """The tensors of one input set on the device, floating point in the cell's dtype."""
        self._seed(int(arrays["seed"]))
        given = self.file.call("inputs", **own.arguments_of(arrays))
        leaves, form = pytree.tree_flatten(own.as_call(given))
        leaves = [torch.from_numpy(leaf.copy()) if isinstance(leaf, np.ndarray) else leaf for leaf in leaves]
        tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
        if not tensors:
            raise Fault("inputs() returned no tensor and no array: return one, a tuple, or a dict of keywords.")
        self._form = form
        self._constants = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self._given = [isinstance(leaf, torch.Tensor) for leaf in leaves]
        return tuple(self._cast(tensor.detach().to(self.device), self.dtype) for tensor in tensors)

    def calling(self, model: Callable, before: Callable[[], None] = lambda: None) -> Callable[..., Any]:
        """What calls `model` with tensors as `place` returns them, as the user would; `before` each call."""
        bound = self.bound()

        def call(*tensors: torch.Tensor) -> Any:
            before()
            with torch.inference_mode():
                return bound(model, tensors)

        return call

    def bound(self) -> Callable[[Callable, Sequence[torch.Tensor]], Any]:
        """What calls a model, as the user would, with tensors as `place` returns them."""
        args, kwargs = pytree.tree_unflatten(range(len(self._given)), self._form)
        if all(self._given) and args == tuple(range(len(args))) and not kwargs:
            return lambda model, tensors: model(*tensors)
        if all(self._given) and not args and list(kwargs.values()) == list(range(len(kwargs))):
            names = tuple(kwargs)
            return lambda model, tensors: model(**dict(zip(names, tensors, strict=True)))

        def put_together(model: Callable, tensors: Sequence[torch.Tensor]) -> Any:
            args, kwargs = self._together(tensors)
            return model(*args, **kwargs)

        return put_together

    def restore(self) -> None:
        """Put the model's buffers back, where they lie."""
        with torch.no_grad():
            for buffer, first in self._buffers:
                buffer.copy_(first)

    def reference(self, sets: Sequence[tuple]) -> tuple[str, list[dict[str, np.ndarray]]]:
        """Outputs on these input sets in eager mode, in float64 where the model runs in it."""
        self.refuse_what_changes(self.module, sets[0])
        return self.in_more_precision(self.calling, sets)

    def in_more_precision(
        self, calling: Callable[[torch.nn.Module], Callable], sets: Sequence[tuple]
    ) -> tuple[str, list[dict[str, np.ndarray]]]:
        """What `calling(a copy of the model)` gives on these input sets, in the first dtype that it runs in."""
        for dtype in dict.fromkeys((torch.float64, torch.float32, self.dtype)):
            with contextlib.suppress(Exception), self._copy_in(dtype) as model:
                call = calling(model)
                outputs = []
                for tensors in sets:  # what is written to by the next call is copied
                    arrays = named(call(*(self._cast(tensor, dtype) for tensor in tensors)))
                    outputs.append({name: array.copy() for name, array in arrays.items()})
                return f"its own eager mode in {str(dtype).removeprefix('torch.')}", outputs
        raise Unsupported("the model does not run on a copy of its weights, so nothing can be compared with it.")

    def cost(self, tensors: tuple) -> Counted | None:
        """FLOPs and bytes of one eager call."""
        counted = count(lambda: self.calling(self.module)(*tensors), self.module, tensors)
        self.restore()
        return counted

    def refuse_what_changes(
        self, module: torch.nn.Module, tensors: tuple, restore: Callable[[], None] | None = None
    ) -> None:
        """Raise `Unsupported` for a model whose output two calls on one input do not have in common."""
        call = self.calling(module)
        reason = own.problem(lambda: named(call(*tensors)), self._seed, self._tolerance, restore or self.restore)
        if reason:
            raise Unsupported(reason)

    @contextlib.contextmanager
    def _copy_in(self, dtype: torch.dtype) -> Iterator[torch.nn.Module]:
        """A copy of the model, and what its code makes by default, in another floating-point dtype."""
        before = torch.get_default_dtype()
        torch.set_default_dtype(dtype)
        try:
            yield copy.deepcopy(self.module).to(self.device, dtype)
        finally:
            torch.set_default_dtype(before)

    def _together(self, tensors: Sequence[Any]) -> tuple[tuple, dict]:
        left = iter(tensors)
        leaves = [next(left) if given else self._constants[index] for index, given in enumerate(self._given)]
        return pytree.tree_unflatten(leaves, self._form)

    @staticmethod
    def _cast(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        return tensor.to(dtype, copy=True) if tensor.is_floating_point() else tensor.clone()

    @staticmethod
    def _seed(seed: int) -> None:
        own.seed_python(seed)
        torch.manual_seed(seed)


class Owned(own.Owned):
    """What a step tells of its user's model; `backend` is that of a compiled mode."""

    def __init__(self, model: Model, sets: Sequence[tuple], backend: segments.Backend | None = None):
        super().__init__(model)
        self._sets, self._backend = sets, backend

    def reference(self, calls: int) -> tuple[str, list[dict[str, np.ndarray]]]:
        return self._model.reference(self._sets[:calls])

    def cost(self) -> Counted | None:
        return self._model.cost(self._sets[0])

    def watch(self, around: Callable[[Callable, Sequence], Any] | None) -> None:
        if self._backend:
            self._backend.around = around


def named(output: Any) -> dict[str, np.ndarray]:
    """An output's tensors by name, on the host."""
    tensors = own.named(output, lambda value: isinstance(value, torch.Tensor))
    return {name: _array(tensor) for name, tensor in tensors.items()}


def _array(tensor: torch.Tensor) -> np.ndarray:
    tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return tensor.detach().to(torch.float64 if tensor.dtype == torch.float64 else torch.float32).cpu().numpy()


def prepare(model: Model, cell: Cell, inputs: Sequence[Arrays], device: torch.device, source: str) -> Step:
    """The model in the cell's mode. Where it breaks into several graphs, the step says where and why."""
    sets = [model.place(arrays) for arrays in inputs]
    if cell.mode == "eager":
        call = model.calling(model.module)
        listed = lambda: program.operations(call, sets[0])  # noqa: E731
        return Step(call, sets, restore=model.restore, program=listed, own=Owned(model, sets))
    if cell.mode == cuda_graph.MODE:
        replayed = cuda_graph.Replayed(model.calling(model.module), cuda_graph.Recorder(device), model.restore)
        listed = lambda: replayed.operations(program.operations)  # noqa: E731
        return Step(replayed, sets, replayed.capture, model.restore, listed, own=Owned(model, sets))
    backend = segments.Backend(cell.mode, device, source)
    compiled = torch.compile(model.module, backend=backend, fullgraph=False, dynamic=cell.shapes == "dynamic")
    if cell.mode in graphs.OPTIONS:
        compiled = graphs.under_options(compiled, graphs.OPTIONS[cell.mode])
    call = model.calling(compiled, backend.begin)
    listed = partial(backend.listed, lambda call: torch.inference_mode()(call))
    return Step(call, sets, backend.capture, model.restore, listed, own=Owned(model, sets, backend))
