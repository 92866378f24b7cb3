"""Values of a layer that calls change, saved and restored."""

from __future__ import annotations

import copy
from typing import Any

import paddle
from paddle import nn

from frameworks.copies import copies_in_functions


class State:
    """A copy of a layer's buffers and of its parameters without a gradient (such as running statistics).

    With `trained` it includes the parameters that have a gradient.
    """

    def __init__(self, layer: nn.Layer, trained: bool = False):
        self._buffers = [
            (owner, name, buffer, None if buffer is None else buffer.clone())
            for owner in layer.sublayers(include_self=True)
            for name, buffer in owner._buffers.items()
            if buffer is None or has_memory(buffer)
        ]
        self._fixed = [(one, one.clone()) for one in layer.parameters() if one.stop_gradient]
        # On the host, since training has the device's memory for gradients and moments.
        self._trained = [(one, one.numpy()) for one in layer.parameters() if trained and not one.stop_gradient]

    @paddle.no_grad()
    def restore(self) -> None:
        """Put all back, in place."""
        for owner, name, buffer, first in self._buffers:
            owner._buffers[name] = buffer  # where a call bound another one
            if first is not None:
                paddle.assign(first, buffer)
        for parameter, first in self._fixed:
            paddle.assign(first, parameter)
        for parameter, first in self._trained:
            parameter.set_value(first)


def has_memory(tensor: paddle.Tensor) -> bool:
    """Return whether a tensor holds values: recurrent layers keep a buffer for a state of dropout that has none."""
    return tensor._is_initialized()


def copied(layer: nn.Layer, *shared: paddle.Tensor) -> nn.Layer:
    """Return a copy of a layer that shares the tensors `shared` with it; its hooks hold the copy.

    `to_static` replaces the forward of its argument. Paddle 2 also replaces that of every layer within.
    """
    empty = [buffer for buffer in layer.buffers() if not has_memory(buffer)]  # those have no copy
    copies: dict[int, Any] = {id(tensor): tensor for tensor in (*shared, *empty)}
    made = copy.deepcopy(layer, copies)
    copies_in_functions((vars(part) for part in made.sublayers(include_self=True)), copies)
    return made
