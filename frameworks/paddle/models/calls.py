"""How models are called."""

from __future__ import annotations

import paddle
from paddle import nn


def named(model, names: tuple[str, ...]):
    """Return `model` with its results, one or several, under their names."""

    def call(*inputs):
        outputs = model(*inputs)
        return dict(zip(names, outputs if isinstance(outputs, (tuple, list)) else (outputs,)))  # noqa: B905 - timed

    return call


def without_gradients(model: nn.Layer):
    """Return `model` as inference calls it."""

    def call(*inputs):
        with paddle.no_grad():
            return model(*inputs)

    return call
