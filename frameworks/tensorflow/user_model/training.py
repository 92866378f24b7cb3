"""Training of user models in TensorFlow: one optimizer iteration on their file's loss of the model's output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import tensorflow as tf

from frameworks import user_model
from frameworks.adapter import Step, Unsupported
from frameworks.tensorflow.inspect import program
from frameworks.tensorflow.modes.training import Trainer
from frameworks.tensorflow.user_model.model import Made, Model, captured
from frameworks.user_file import Fault
from frameworks.user_model import Inputs
from measurement.cells import Cell


class Training(user_model.Training):
    """A user's model under training."""

    def losses(self, model: Made, sets: Sequence[Inputs], dtype: str) -> Iterator[Any]:
        trainer = trainer_of(self.model, model)
        iteration = trainer.with_state(trainer)
        return (iteration(*inputs) for inputs in sets)


def trainer_of(user: Model, model: Made) -> Trainer:
    """Return one optimizer iteration on the loss of what a model gives, whose variables are trained."""
    function = user.file.function("loss")

    def loss(args: tuple, kwargs: dict[str, Any]) -> tf.Tensor:
        value = function(model.call(*args, **kwargs))
        if not tf.is_tensor(value) or value.shape.num_elements() != 1:
            raise Fault("loss(output) is to return a scalar tensor, such as tf.reduce_mean(output**2).")
        return value

    if not model.trained:
        raise Fault("model() has no trainable variables, so there is nothing to train.")
    return Trainer(loss, model.trained, {f"state.{index}": held for index, held in enumerate(model.state)})


def prepare(model: Model, cell: Cell) -> Step:
    """Return an iteration in the cell's mode, on variables of its own."""
    if cell.dtype == "bf16":
        raise Unsupported("user models are trained in fp32 alone in TensorFlow: set DTYPE=fp32.")
    trainer = trainer_of(model, model.copied(model.dtype))
    fields = {"restore": trainer.restore, "user_model": Training(model, in_float32=True)}
    if cell.mode == "eager":
        listed = lambda: program.executed(trainer, *model.fresh(model.sets[0]))  # noqa: E731
        return Step(trainer.with_state(trainer), model.sets, program=listed, **fields)
    call, sets, capture, listed = captured(trainer, model, cell)
    return Step(trainer.with_state(call), sets, capture, program=listed, **fields)
