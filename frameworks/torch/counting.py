"""FLOPs and bytes of a call, counted while it runs operator by operator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from frameworks.own import Counted

BY = "torch.utils.flop_counter: products, convolutions and attention; bytes of every operator's operands and results"


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


def count(call: Callable[[], Any], module: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> Counted:
    """What `call` computes and moves; weights, buffers, inputs and outputs once are what must move."""
    flops, moved = FlopCounterMode(display=False), _Bytes()
    with flops:
        output = call()
    with moved:
        call()
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
