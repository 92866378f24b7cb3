"""Training of users' own TensorFlow models: one optimizer iteration on their file's loss of the model's output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import tensorflow as tf

from frameworks import own
from frameworks.adapter import Step, Unsupported
from frameworks.tensorflow import program
from frameworks.tensorflow.own import Model, captured, named, raw
from frameworks.tensorflow.training import Trainer
from frameworks.user_file import Fault
from measurement.cells import Cell


class Owned(own.OwnedTraining):
    """What a step tells of the user's model under training."""

    def _losses(self, call: Callable, sets: Sequence) -> list[dict[str, np.ndarray]]:
        trainer = trainer_of(self._model, call)
        iteration = trainer.with_state(trainer)
        return [named(iteration(*tensors)) for tensors in sets]


def trainer_of(model: Model, call: Callable[..., Any]) -> Trainer:
    """One optimizer iteration on the loss of what `call` gives, whose model's variables are trained."""
    function = model.file.function("loss")

    def loss(*tensors: tf.Tensor) -> tf.Tensor:
        value = function(call(*tensors))
        if not tf.is_tensor(value) or value.shape.num_elements() != 1:
            raise Fault("loss(output) is to return a scalar tensor, such as tf.reduce_mean(output**2).")
        return value

    trained = raw(getattr(call.model, "trainable_variables", ()))
    if not trained:
        raise Fault("model() has no trainable variables, so there is nothing to train.")
    names = {id(variable) for variable in trained}
    held = [variable for variable in raw(call.model.variables) if id(variable) not in names]
    return Trainer(loss, trained, {f"state.{index}": variable for index, variable in enumerate(held)})


def prepare(model: Model, cell: Cell) -> Step:
    """An iteration in the cell's mode, on variables of its own."""
    if cell.dtype == "bf16":
        raise Unsupported("users' own models are trained in fp32 alone in TensorFlow: set DTYPE=fp32.")
    trainer = trainer_of(model, model.copied(model.dtype))
    told = {"restore": trainer.restore, "own": Owned(model)}
    if cell.mode == "eager":
        listed = partial(program.executed, trainer, *model.sets[0])
        return Step(trainer.with_state(trainer), model.sets, program=listed, **told)
    call, sets, capture, listed = captured(lambda *tensors: trainer(*tensors), model.sets, cell)
    return Step(trainer.with_state(call), sets, capture, program=listed, **told)
