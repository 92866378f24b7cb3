"""Training of user models in torch: one optimizer iteration on their file's loss of the model's output."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from frameworks import user_model
from frameworks.adapter import Capture, Step
from frameworks.torch.inspect.counting import count
from frameworks.torch.modes import graphs, iteration, training
from frameworks.torch.user_model import graph_breaks
from frameworks.torch.user_model.model import Model, Replayed
from frameworks.user_file import Fault
from frameworks.user_model import Counted, Inputs
from measurement.cells import Cell
from workloads.training import UPDATE_BYTES


class Training(user_model.Training):
    """A user's module under training."""

    def __init__(self, model: Model, objective: Callable[[torch.nn.Module], training.Objective], in_float32: bool):
        super().__init__(model, in_float32)
        self._objective = objective

    def losses(self, model: torch.nn.Module, sets: Sequence[Inputs], dtype: str) -> Iterator[Any]:
        trainer = self._trainer(model)
        return (trainer(*inputs) for inputs in sets)

    def cost(self) -> Counted:
        """Return FLOPs and bytes of one eager iteration; the update reads and writes every weight, fused or not."""
        module = copy.deepcopy(self.model.module)
        counted = count(self._trainer(module), module, lambda: self.model.fresh(self.model.sets[0]))
        weights = sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
        return replace(counted, bytes=counted.bytes + UPDATE_BYTES * weights)

    def _trainer(self, module: torch.nn.Module) -> training.Trainer:
        objective = self._objective(module)
        return training.Trainer(objective, objective, 1, keep_gradients=False)


def prepare(model: Model, cell: Cell, device: torch.device, source: str) -> Step:
    """Return an iteration in the cell's mode, on a copy of the model: parameters change, and stay in float32.

    What is captured is the model with its loss.
    """
    loss = _loss_of(model)

    def objective(module: torch.nn.Module) -> training.Objective:
        bf16 = cell.dtype == "bf16" and next(module.parameters()).dtype == torch.float32  # not in the reference's
        return training.Objective(module, loss, device, bf16)

    def compiled(function: Callable) -> tuple[Callable, Callable[[], Capture], Callable]:
        backend = graph_breaks.Backend(cell.mode, device, source)
        graph = torch.compile(function, backend=backend, fullgraph=False, dynamic=graph_breaks.DYNAMIC[cell.shapes])
        if cell.mode in graphs.OPTIONS:
            graph = graphs.under_options(graph, graphs.OPTIONS[cell.mode])

        def call(*arguments: Any) -> Any:
            backend.begin()
            return graph(*arguments)

        return call, backend.capture, backend.listed

    module = copy.deepcopy(model.module)
    subject, replayed = Training(model, objective, cell.dtype != "bf16"), partial(Replayed, model)
    return iteration.step(objective(module), cell, model.sets, device, compiled, subject, replayed)


def _loss_of(model: Model) -> Callable[..., torch.Tensor]:
    """Return what gives the loss of a module on an input set."""
    function = model.file.function("loss")

    def loss(module: torch.nn.Module, args: tuple, kwargs: dict[str, Any]) -> torch.Tensor:
        value = function(module(*args, **kwargs))
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise Fault("loss(output) is to return a scalar tensor, such as output.square().mean().")
        return value

    return loss
