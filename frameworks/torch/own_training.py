"""Training of users' own torch models: one optimizer iteration on their file's loss of the model's output."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from frameworks import own
from frameworks.adapter import Capture, Step
from frameworks.own import Counted, Fault
from frameworks.torch import graphs, iteration, segments, training
from frameworks.torch.counting import count
from frameworks.torch.own import Model
from measurement.cells import Cell
from workloads.spec import Arrays
from workloads.training import UPDATE_BYTES


class Owned(own.Owned):
    """What a step tells of the user's model under training."""

    def __init__(self, model: Model, sets: Sequence[tuple], objective: Callable[[torch.nn.Module], training.Objective]):
        super().__init__(model)
        self._sets, self._objective = sets, objective

    def reference(self, calls: int) -> tuple[str, list[dict[str, np.ndarray]]]:
        """Losses of the first iterations in eager mode, in float64 where the model runs in it, and buffers after."""
        module = copy.deepcopy(self._model.module).to(self._model.device)
        first = {name: tensor.clone() for name, tensor in module.state_dict().items()}
        self._model.refuse_what_changes(module, self._sets[0], lambda: module.load_state_dict(first))
        return self._model.in_more_precision(self._trainer, self._sets[:calls])

    def cost(self) -> Counted | None:
        """FLOPs and bytes of one eager iteration; the update reads and writes every weight, whatever is fused."""
        module = copy.deepcopy(self._model.module).to(self._model.device)
        trainer = self._trainer(module)
        counted = count(lambda: trainer(*self._sets[0]), module, self._sets[0])
        weights = sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
        return counted and replace(counted, bytes=counted.bytes + UPDATE_BYTES * weights)

    def _trainer(self, module: torch.nn.Module) -> training.Trainer:
        objective = self._objective(module)
        return training.Trainer(objective, objective, 1, keep_gradients=False)


def prepare(model: Model, cell: Cell, inputs: Sequence[Arrays], device: torch.device, source: str) -> Step:
    """An iteration in the cell's mode, on a copy of the model: each mode changes its parameters, which stay in float32.

    What is captured is the model with its loss.
    """
    sets = [model.place(arrays) for arrays in inputs]
    loss = _loss_of(model)

    def objective(module: torch.nn.Module) -> training.Objective:
        bf16 = cell.dtype == "bf16" and next(module.parameters()).dtype == torch.float32  # not in the reference's
        return training.Objective(module, loss, device, bf16)

    def compiled(function: Callable) -> tuple[Callable, Callable[[], Capture], Callable]:
        backend = segments.Backend(cell.mode, device, source)
        graph = torch.compile(function, backend=backend, fullgraph=False, dynamic=cell.shapes == "dynamic")
        if cell.mode in graphs.OPTIONS:
            graph = graphs.under_options(graph, graphs.OPTIONS[cell.mode])

        def call(*arguments: Any) -> Any:
            backend.begin()
            return graph(*arguments)

        return call, backend.capture, backend.listed

    module = copy.deepcopy(model.module).to(device)
    return iteration.step(objective(module), cell, sets, device, compiled, Owned(model, sets, objective))


def _loss_of(model: Model) -> Callable[..., torch.Tensor]:
    """What gives the loss of a model on tensors as `place` returns them."""
    function, bound = model.file.function("loss"), model.bound()

    def loss(module: torch.nn.Module, *tensors: torch.Tensor) -> torch.Tensor:
        value = function(bound(module, tensors))
        if not isinstance(value, torch.Tensor) or value.numel() != 1:
            raise Fault("loss(output) is to return a scalar tensor, such as output.square().mean().")
        return value

    return loss
