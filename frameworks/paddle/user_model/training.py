"""Training of user models in Paddle: one optimizer iteration on their file's loss of the layer's output."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

from paddle import nn

from frameworks import user_model
from frameworks.adapter import Step, Unsupported
from frameworks.paddle.modes import training
from frameworks.paddle.modes.state import has_memory
from frameworks.paddle.user_model.model import Called, Model, captured, listed
from measurement.cells import Cell


class Training(user_model.Training):
    """A user's layer under training."""

    model: Model

    def __init__(self, model: Model, bf16: bool):
        super().__init__(model)
        self._bf16 = bf16
        if any(getattr(part, "_sparse", False) for part in model.module.sublayers(include_self=True)):
            raise Unsupported("Paddle's AdamW takes no sparse gradients: use nn.Embedding without sparse=True.")

    def objective(self, layer: nn.Layer) -> Called:
        """Return the loss of a layer on an input set."""
        objective = Called(layer, self.model.file.function("loss"))
        objective.train()
        return objective

    def trainer(self, model: nn.Layer, dtype: str) -> training.Trainer:
        objective = self.objective(model)
        return trainer_of(objective, objective, self._bf16 and dtype == "float32")


def trainer_of(objective: Called, loss: Callable, bf16: bool = False) -> training.Trainer:
    """Return an iteration on an objective, which `loss` computes; values without a gradient join the outputs.

    Buffers are read after each call: eager mode binds another tensor where a graph writes to the first one.
    """
    fixed = {name: one for name, one in objective.named_parameters() if one.stop_gradient and one.is_floating_point()}
    buffers = [
        (f"{path}.{name}".strip("."), owner._buffers, name)
        for path, owner in objective.named_sublayers(include_self=True)
        for name, one in owner._buffers.items()
        if one is not None and has_memory(one) and one.is_floating_point()
    ]
    state = lambda: fixed | {path: held[name] for path, held, name in buffers}  # noqa: E731
    return training.Trainer(objective, loss, 1, bf16, state)


def prepare(model: Model, cell: Cell) -> Step:
    """Return an iteration in the cell's mode, on a copy of the layer, whose parameters stay in float32.

    A graph captures the layer with its loss.
    """
    bf16 = cell.dtype == "bf16"
    subject = Training(model, bf16)
    objective = subject.objective(model.copy())
    if cell.mode == "eager":
        trainer = trainer_of(objective, objective, bf16)
        operators = partial(listed, model, trainer.loss, cell)
        return Step(trainer, model.sets, restore=trainer.restore, program=operators, user_model=subject)
    step = captured(objective, model, cell, contextlib.nullcontext, {"user_model": subject})
    trainer = trainer_of(objective, step.call, bf16)
    return Step(trainer, model.sets, step.capture, trainer.restore, step.program, user_model=subject)
