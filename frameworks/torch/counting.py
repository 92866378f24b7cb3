"""FLOPs and bytes of a call, counted while it runs operator by operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from frameworks.own import Counted

# Recurrent layers as one kernel for all steps, of which nothing is counted.
UNCOUNTED = ("mkldnn_rnn_layer_backward", "_cudnn_rnn", "_cudnn_rnn_backward")
BY = "torch.utils.flop_counter: products, convolutions and attention; bytes of every operator's operands and results"


def fused_lstm(rows: Sequence[int], of_inputs: Sequence[int], of_states: Sequence[int], *_: Any, **__: Any) -> int:
    """FLOPs of an LSTM layer of oneDNN by shapes (steps, sequences, inputs), (gates, inputs) and (gates, states).

    Both matrices are multiplied with every step of every sequence once.
    """
    return 2 * prod(rows[:-1]) * (prod(of_inputs) + prod(of_states))


class _Bytes(TorchDispatchMode):
    """Sums what operators read and write; a view moves nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.moved = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not func.is_view:
            self.moved += nbytes((args, kwargs, result))
        return result


def count(call: Callable[[], Any], module: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> Counted | None:
    """What `call` computes and moves; weights, buffers, inputs and outputs once are what must move.

    None where it runs a kernel that is not counted.
    """
    uncounted: list[int] = []

    def passed_over(*_: Any, **__: Any) -> int:
        uncounted.append(1)
        return 0

    rules = {getattr(torch.ops.aten, name): passed_over for name in UNCOUNTED}
    rules[torch.ops.aten.mkldnn_rnn_layer] = fused_lstm
    flops, moved = FlopCounterMode(display=False, custom_mapping=rules), _Bytes()
    with flops:
        output = call()
    with moved:
        call()
    if uncounted:
        return None
    held = [*module.parameters(), *module.buffers()]
    return Counted(
        flops=int(flops.get_total_flops()),
        bytes=nbytes((held, list(inputs), output)),
        unfused_bytes=moved.moved,
        by=BY,
    )


def nbytes(values: Any) -> int:
    """Bytes of all tensors in a tree, each memory once."""
    tensors = [leaf for leaf in tree_leaves(values) if isinstance(leaf, torch.Tensor)]
    return sum({id(tensor): tensor.nbytes for tensor in tensors}.values())
