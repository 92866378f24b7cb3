"""Training on several ranks: DDP and FSDP2, eager and compiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.nn.parallel import DistributedDataParallel

from frameworks import ranks
from frameworks.adapter import Capture, Unsupported
from frameworks.torch.models import plain
from frameworks.torch.modes import graphs
from measurement.cells import Cell

BETWEEN_BLOCKS = ("fully_shard", "parameters are gathered and freed between the compiled blocks")
NO_CAPTURE = partial(Capture, whole=False, graphs=0)
Parallel = tuple[nn.Module, Callable[[], Capture]]  # what computes the loss, and what reports its capture


def distributed(cell: Cell, objective: nn.Module, device: torch.device, compiled: Callable) -> Parallel:
    """Return the objective as the cell's strategy trains it, with what reports its capture.

    `compiled` makes of a function the compiled one, what reports its capture, and what lists its operators.
    """
    if not dist.is_initialized():
        raise Unsupported(ranks.ALONE)
    if cell.parameter("strategy") == "ddp":
        return _ddp(cell, objective, device, compiled)
    return _fsdp(cell, objective, device)


def _ddp(cell: Cell, objective: nn.Module, device: torch.device, compiled: Callable) -> Parallel:
    """Return the whole objective compiled inside DDP; Dynamo's backend divides its graph where DDP's buckets end."""
    capture: Callable[[], Capture] = NO_CAPTURE
    if cell.mode != "eager":  # DDP's own forward is no graph
        objective.forward, capture, _ = compiled(objective.forward)
    return DistributedDataParallel(objective, device_ids=[device] if device.type == "cuda" else None), capture


def _fsdp(cell: Cell, objective: nn.Module, device: torch.device) -> Parallel:
    """Return the objective with its blocks sharded, each compiled where the mode is a graph, and then the rest."""
    mesh = init_device_mesh(device.type, (cell.ranks,))
    backend = None if cell.mode == "eager" else graphs.CountingBackend(cell.mode, device)
    found = plain.blocks(objective)  # BatchNorm, which has no kernel for parameters in bf16, is in models without
    dtypes = (torch.bfloat16, torch.float32) if cell.dtype == "bf16" and found else ()
    mixed = MixedPrecisionPolicy(*dtypes)
    if backend and not found:
        raise Unsupported("this model has no list of blocks that could be compiled between FSDP's hooks.")
    for block in found:
        if backend:
            dynamic = cell.shapes == "dynamic"
            block.forward = torch.compile(block.forward, backend=backend, fullgraph=True, dynamic=dynamic)
        fully_shard(block, mesh=mesh, mp_policy=mixed)
    fully_shard(objective, mesh=mesh, mp_policy=mixed)
    return objective, partial(_by_blocks, backend) if backend else NO_CAPTURE


def _by_blocks(backend: graphs.CountingBackend) -> Capture:
    return replace(backend.capture(), whole=False, breaks=(BETWEEN_BLOCKS,))
