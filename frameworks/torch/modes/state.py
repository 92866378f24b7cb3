"""Values of a module that calls change, saved and restored."""

from __future__ import annotations

import torch


class State:
    """A module's buffers, and its `parameters` where training changes them, as they are now.

    `restore` puts them back in place: a graph reads and writes the same memory.
    """

    def __init__(self, module: torch.nn.Module, parameters: bool = True):
        self._buffers = [
            (owner, name, buffer, None if buffer is None else buffer.detach().clone())
            for owner in module.modules()
            for name, buffer in owner._buffers.items()
        ]
        # On the host, since training has the device's memory for gradients and moments.
        self._parameters = [
            (parameter, parameter.detach().to("cpu", copy=True)) for parameter in module.parameters() if parameters
        ]

    @torch.no_grad()
    def restore(self) -> None:
        for owner, name, buffer, first in self._buffers:
            owner._buffers[name] = buffer  # where a call bound another one
            if first is not None and _differ(buffer, first):  # memory without write access may be read
                if buffer.shape != first.shape:
                    buffer.resize_(first.shape)
                    if first.layout is torch.strided:
                        buffer.as_strided_(first.shape, first.stride())
                buffer.copy_(first)
        for parameter, first in self._parameters:
            parameter.copy_(first)


def _differ(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors have different values, or a layout in which torch compares none."""
    try:
        return not torch.equal(one, other)
    except RuntimeError:
        return True
