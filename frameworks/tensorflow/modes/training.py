"""The training pass: a gradient tape and Keras's AdamW, eager or as one `tf.function`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial

import keras
import tensorflow as tf

from frameworks import ranks
from frameworks.adapter import Adapter, Step
from frameworks.tensorflow.models import build
from frameworks.tensorflow.modes import graphs, parallel
from measurement.cells import Cell
from workloads import training
from workloads.spec import Arrays, Workload

keras.backend.set_floatx("float32")  # of the learning rate, despite ~/.keras/keras.json
SETTINGS = {
    "optimizer": f"keras.optimizers.AdamW (Keras {keras.__version__}), inside the tf.function where there is one",
    "dtype": "variables and moments in fp32, variables cast to the cell's dtype where they are used",
}


def _mlp(model: tf.Module, x: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
    return tf.reduce_mean(tf.math.squared_difference(tf.cast(model(x)["output"], tf.float32), target))


def _bert(model: tf.Module, *inputs: tf.Tensor) -> tf.Tensor:
    *given, labels = inputs
    return _cross_entropy(model.classifier(model(*given)["pooler_output"]), labels)


def _gpt(model: tf.Module, input_ids: tf.Tensor, targets: tf.Tensor) -> tf.Tensor:
    return _cross_entropy(model.logits(input_ids, last=False), tf.reshape(targets, (-1,)))


def _classes(model: tf.Module, given: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    return _cross_entropy(model(given)["logits"], labels)


def _cross_entropy(logits: tf.Tensor, classes: tf.Tensor) -> tf.Tensor:
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(classes, tf.cast(logits, tf.float32))
    return tf.reduce_mean(losses)


LOSSES = {"mlp": _mlp, "bert": _bert, "gpt": _gpt} | dict.fromkeys(("resnet", "vit", "lstm"), _classes)


def prepare(adapter: Adapter, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
    """Return an iteration in the cell's mode."""
    strategy = parallel.mirrored(adapter.device, cell.ranks) if cell.ranks > 1 else None
    with strategy.scope() if strategy else contextlib.nullcontext():
        model, sets = build.build(workload, cell, weights), [adapter.place(cell, arrays) for arrays in inputs]
        loss, count = partial(LOSSES[workload.family], model), int(cell.parameter("accumulate"))
        trainer = Trainer(loss, model.trainable_variables, getattr(model, "state", {}), count, cell.ranks)
    iterate = parallel.on_every_device(strategy, trainer) if strategy else trainer
    step = graphs.in_mode(workload, cell, iterate, sets, trainer.with_state, {"restore": trainer.restore})
    if strategy:
        step.program = lambda: ranks.PROGRAM
    return step


class Trainer(tf.Module):
    """Calling it runs one optimizer iteration on the `loss` of the inputs.

    `trained` are the variables that are updated, `state` the model's running statistics by name, where it has any.
    `draws` are states of generators of random numbers, which are restored with these but are no output.
    Keras sums gradients over `replicas`, so each contributes those of its share of the mean loss.
    """

    def __init__(
        self,
        loss: Callable[..., tf.Tensor],
        trained: Sequence,
        state: dict,
        accumulate: int = 1,
        replicas: int = 1,
        draws: Sequence[tf.Variable] = (),
    ):
        super().__init__()
        self.loss, self.accumulate, self.replicas = loss, accumulate, replicas
        self.trained, self.state, self.draws = trained, state, draws
        first, second = training.BETAS
        self.optimizer = keras.optimizers.AdamW(
            training.LEARNING_RATE, training.WEIGHT_DECAY, beta_1=first, beta_2=second, epsilon=training.EPSILON
        )
        self.optimizer.build(self.trained)
        self.first = [variable.numpy() for variable in self._state()]

    def __call__(self, *inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        loss, gradients = self._gradients(*inputs)
        self.optimizer.apply(gradients, self.trained)
        return {"loss": tf.reshape(loss, (1,))}

    def restore(self) -> None:
        """Put the first weights, statistics and moments back, in place."""
        for variable, value in zip(self._state(), self.first, strict=True):
            variable.assign(value)

    def with_state(self, iteration: Callable) -> Callable:
        """Return `iteration`, eager or captured, whose outputs the running statistics join, without a copy."""
        return lambda *inputs: {**iteration(*inputs), **self.state}

    def _state(self) -> list:
        return [*self.trained, *self.state.values(), *self.draws, *self.optimizer.variables]

    def _gradients(self, *inputs: tf.Tensor) -> tuple:
        """Return the mean loss over the micro-batches, and its gradients. Micro-batches form the first axis."""
        if self.accumulate == 1:
            return self._micro_batch(inputs)

        def add(index: tf.Tensor, loss: tf.Tensor, *sums: tf.Tensor) -> tuple:
            more, gradients = self._micro_batch(tuple(x[index] for x in inputs))
            added = (total + tf.convert_to_tensor(one) for total, one in zip(sums, gradients, strict=True))
            return (index + 1, loss + more, *added)

        start = (tf.constant(0), tf.constant(0.0), *(tf.zeros_like(variable) for variable in self.trained))
        _, loss, *sums = tf.while_loop(lambda index, *_: index < self.accumulate, add, start)  # eager: Python's loop
        return loss / self.accumulate, [total / self.accumulate for total in sums]

    def _micro_batch(self, inputs: tuple) -> tuple:
        with tf.GradientTape() as tape:
            loss = self.loss(*inputs)
            share = loss if self.replicas == 1 else loss / self.replicas
        return loss, tape.gradient(share, self.trained)
