"""Training of user models in TensorFlow: one optimizer iteration on their file's loss of the model's output."""

from __future__ import annotations

import contextlib
from typing import Any

import tensorflow as tf

from frameworks import user_model
from frameworks.adapter import Step, Unsupported
from frameworks.tensorflow.inspect import program
from frameworks.tensorflow.modes import training
from frameworks.tensorflow.user_model.model import Made, Model, captured
from frameworks.user_file import Fault
from measurement.cells import Cell


class Training(user_model.Training):
    """A user's model under training."""

    def cost(self) -> None:
        """List the constants of the model's graph; no iteration is counted."""
        with contextlib.suppress(Exception):  # a graph that cannot be traced has its own reason
            self.model.traced(self.model.fresh(self.model.sets[0]))

    def trainer(self, model: Made, dtype: str) -> Any:
        trainer = self.trainer_of(model)
        return trainer.with_state(trainer)

    def trainer_of(self, made: Made) -> training.Trainer:
        """Return one optimizer iteration on the loss of a model's output, whose variables are trained."""
        function = user_model.scalar_loss(self.model.file, _is_scalar, "tf.reduce_mean(output**2)")

        def loss(args: tuple, kwargs: dict[str, Any]) -> tf.Tensor:
            made.arrays.put()  # places outside of `model()` have those of another copy
            return function(made.call(*args, **kwargs))

        if not made.trained:
            raise Fault("model() has no trainable variables, so there is nothing to train.")
        state = {f"state.{index}": held for index, held in enumerate(made.state)}
        return training.Trainer(loss, made.trained, state, draws=made.draws)


def prepare(model: Model, cell: Cell) -> Step:
    """Return an iteration in the cell's mode, on its own variables."""
    if cell.dtype == "bf16":
        raise Unsupported("TensorFlow trains user models in fp32 only: set DTYPE=fp32.")
    subject = Training(model)
    trainer = subject.trainer_of(model.as_trained())
    fields = {"restore": trainer.restore, "user_model": subject}
    if cell.mode == "eager":
        listed = lambda: program.executed(trainer, model.fresh(model.sets[0]))  # noqa: E731
        return Step(trainer.with_state(trainer), model.sets, program=listed, **fields)
    call, sets, capture, listed = captured(trainer, model, cell)
    return Step(trainer.with_state(call), sets, capture, program=listed, **fields)


def _is_scalar(value: Any) -> bool:
    return tf.is_tensor(value) and value.shape.num_elements() == 1
