"""Training on several ranks: DDP and FSDP2, eager and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor
from torch.nn.parallel import DistributedDataParallel

from frameworks import ranks
from frameworks.adapter import DTYPES, Adapter, Capture, Step, Unsupported
from frameworks.torch.modes import graphs
from measurement.cells import Cell

BETWEEN_BLOCKS = ("fully_shard", "parameters are gathered and freed between the compiled blocks")
NO_CAPTURE = partial(Capture, whole=False, graphs=0)
Make = Callable[[Callable[[nn.Module], object] | None], Any]
NO_BLOCKS = "this model has no list of blocks that could be compiled between FSDP's hooks."


def prepare(adapter: Adapter, cell: Cell, make: Make, trained: Callable, resident: Sequence[tuple]) -> Step:
    """Return an iteration of this rank, on input sets on the device.

    `make` returns the objective, and calls its argument with each block; `trained(objective, loss)` is its trainer.
    """
    if not dist.is_initialized():
        raise Unsupported(ranks.ALONE)
    call: Callable[..., Any]
    if cell.parameter("strategy") == "ddp":
        objective = make(None)
        loss, capture = _ddp(cell, objective, adapter.device)
        call = trainer = trained(objective, loss)
    else:
        if cell.group_id not in adapter.sharded:
            adapter.sharded[cell.group_id] = Sharded(adapter.device, cell, make, trained)
        shared = adapter.sharded[cell.group_id]
        trainer = shared.trainer
        call, capture = shared.in_mode(cell, adapter.device)
    return Step(call, resident, capture, trainer.restore, lambda: ranks.PROGRAM)


def _ddp(cell: Cell, objective: Any, device: torch.device) -> tuple[nn.Module, Callable[[], Capture]]:
    """Return the whole objective compiled inside DDP; Dynamo's backend divides its graph where DDP's buckets end."""
    capture: Callable[[], Capture] = NO_CAPTURE
    if cell.mode != "eager":  # DDP's own forward is no graph
        objective.forward, capture, _ = graphs.compile_model(
            objective.forward, mode=cell.mode, device=device, shapes=cell.shapes
        )
    devices = [device] if device.type == "cuda" else None
    return DistributedDataParallel(objective, device_ids=devices, broadcast_buffers=bool(objective.state)), capture


class Sharded:
    """An objective with its blocks and the rest sharded, and its optimizer: the modes of a group share them.

    A mode is the forwards of the blocks. Each block is sharded before a Llama's next one is loaded.
    """

    def __init__(self, device: torch.device, cell: Cell, make: Make, trained: Callable):
        mesh = init_device_mesh(device.type, (cell.ranks,))
        stored = getattr(torch, DTYPES[str(cell.parameter("states", "fp32"))])  # gradients are summed in it
        # BatchNorm, which has no kernel for parameters in bf16, is in models without blocks.
        mixed = MixedPrecisionPolicy(torch.bfloat16, stored) if cell.dtype == "bf16" else MixedPrecisionPolicy()
        self._blocks: list[nn.Module] = []

        def shard(block: nn.Module) -> None:
            self._blocks.append(fully_shard(block, mesh=mesh, mp_policy=mixed))

        objective = make(shard)
        fully_shard(objective, mesh=mesh, mp_policy=mixed if self._blocks else MixedPrecisionPolicy())
        self._eager = self._current = [block.forward for block in self._blocks]
        self.trainer = trained(objective, objective)

    def in_mode(self, cell: Cell, device: torch.device) -> tuple[Callable[..., Any], Callable[[], Capture]]:
        """Return the iteration in a cell's mode, and the report of its capture."""
        if cell.mode == "eager":
            return partial(self._iterate, self._eager), NO_CAPTURE
        if not self._blocks:
            raise Unsupported(NO_BLOCKS)
        backend = graphs.CountingBackend(cell.mode, device)
        dynamic = graphs.DYNAMIC[cell.shapes]
        compiled = [torch.compile(f, backend=backend, fullgraph=True, dynamic=dynamic) for f in self._eager]
        return partial(self._iterate, compiled), partial(_by_blocks, backend)

    def _iterate(self, forwards: list[Callable], *inputs: torch.Tensor) -> dict[str, torch.Tensor]:
        if forwards is not self._current:
            self._current = forwards
            for block, forward in zip(self._blocks, forwards, strict=True):
                block.forward = forward
        return self.trainer(*inputs)

    def tensors(self) -> list[torch.Tensor]:
        """Return the tensors on this rank: its shards of parameters and moments."""
        return [tensor.to_local() if isinstance(tensor, DTensor) else tensor for tensor in self.trainer.tensors()]


def _by_blocks(backend: graphs.CountingBackend) -> Capture:
    return replace(backend.capture(), whole=False, breaks=(BETWEEN_BLOCKS,))
