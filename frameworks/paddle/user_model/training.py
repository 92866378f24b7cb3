"""Training of user models in Paddle: one optimizer iteration on their file's loss of the layer's output."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import paddle
from paddle import nn

from frameworks import user_model
from frameworks.adapter import Step
from frameworks.paddle.modes import training
from frameworks.paddle.user_model.model import Called, Model, captured, has_memory, listed
from frameworks.user_model import Inputs
from measurement.cells import Cell
from workloads.user_model import UserModel


class Trainer(training.Trainer):
    """On a copy of the user's layer; what no gradient reaches joins the outputs, and is put back as well."""

    def __init__(self, objective: Called, loss: Callable, bf16: bool = False):
        buffers = [(name, buffer) for name, buffer in objective.named_buffers() if has_memory(buffer)]
        self._buffers = [(buffer, buffer.clone()) for _, buffer in buffers]
        fixed = [(name, tensor) for name, tensor in objective.named_parameters() if tensor.stop_gradient]
        state = {name: t for name, t in (*fixed, *buffers) if t.is_floating_point()}
        super().__init__(objective, loss, 1, bf16, state)

    def restore(self) -> None:
        super().restore()
        for buffer, first in self._buffers:
            paddle.assign(first, buffer)


class Training(user_model.Training):
    """A user's layer under training."""

    def losses(self, model: nn.Layer, sets: Sequence[Inputs], dtype: str) -> Iterator[Any]:
        objective = objective_of(self.model, model)
        trainer = Trainer(objective, objective)
        return (trainer(*inputs) for inputs in sets)


def prepare(model: Model, cell: Cell, workload: UserModel) -> Step:
    """Return an iteration in the cell's mode, on a copy of the layer, whose parameters stay in float32.

    What is captured is the layer with its loss.
    """
    objective, bf16 = objective_of(model, model.copied()), cell.dtype == "bf16"
    subject = Training(model, in_float32=not bf16)
    if cell.mode == "eager":
        trainer = Trainer(objective, objective, bf16)
        operators = partial(listed, model, trainer.loss, cell)
        return Step(trainer, model.sets, restore=trainer.restore, program=operators, user_model=subject)
    step = captured(objective, model, workload, cell, contextlib.nullcontext, {"user_model": subject})
    trainer = Trainer(objective, step.call, bf16)
    return Step(trainer, model.sets, step.capture, trainer.restore, step.program, user_model=subject)


def objective_of(model: Any, layer: nn.Layer) -> Called:
    """Return the loss of a layer on an input set."""
    objective = Called(layer, model.file.function("loss"))
    objective.train()
    return objective
