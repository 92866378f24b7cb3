"""Training of users' own Paddle layers: one optimizer iteration on their file's loss of the layer's output."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import paddle
from paddle import nn

from frameworks import own
from frameworks.adapter import Step
from frameworks.paddle import eager_log, graphs, training
from frameworks.paddle.own import Called, Model, named, whole
from measurement.cells import Cell
from workloads.own import Own


class Trainer(training.Trainer):
    """On a copy of the user's layer; what no gradient reaches joins the outputs, and is put back as well."""

    def __init__(self, objective: Called, loss: nn.Layer, bf16: bool = False):
        self._buffers = [(buffer, buffer.clone()) for buffer in objective.buffers()]
        fixed = [(name, tensor) for name, tensor in objective.named_parameters() if tensor.stop_gradient]
        state = {name: t for name, t in (*fixed, *objective.named_buffers()) if t.is_floating_point()}
        super().__init__(objective, loss, 1, bf16, state)

    def restore(self) -> None:
        super().restore()
        for buffer, first in self._buffers:
            paddle.assign(first, buffer)


class Owned(own.OwnedTraining):
    """What a step tells of the user's layer under training."""

    def _losses(self, layer: nn.Layer, sets: Sequence) -> list[dict[str, np.ndarray]]:
        objective = _objective(self._model, layer)
        trainer = Trainer(objective, objective)
        return [named(trainer(*tensors)) for tensors in sets]


def prepare(model: Model, cell: Cell, workload: Own) -> Step:
    """An iteration in the cell's mode, on a copy of the layer, whose parameters stay in float32.

    What is captured is the layer with its loss.
    """
    objective, bf16 = _objective(model, model.copied()), cell.dtype == "bf16"
    if cell.mode == "eager":
        trainer = Trainer(objective, objective, bf16)
        listed = partial(eager_log.listed, trainer.loss, model.sets[0], cell)
        return Step(trainer, model.sets, restore=trainer.restore, program=listed, own=Owned(model))
    static, capture, operators = graphs.to_static(objective, workload, cell, model.sets[0])
    trainer = Trainer(objective, static, bf16)
    told = {"restore": trainer.restore, "program": operators, "own": Owned(model)}
    return Step(trainer, model.sets, lambda: whole(capture()), **told)


def _objective(model: Model, layer: nn.Layer) -> Called:
    objective = Called(layer, model.together, model.file.function("loss"))
    objective.train()
    return objective
