"""Which model a cell means."""

from __future__ import annotations

import torch

from frameworks.torch.models import plain
from frameworks.torch.modes import generation
from measurement.cells import Cell
from workloads.passes import WITH_CACHE
from workloads.spec import Workload


def build(workload: Workload, cell: Cell, tensors: dict[str, torch.Tensor]) -> torch.nn.Module:
    """Return the cell's model with these weights. Raises `Unsupported` where there is none."""
    if cell.implementation == "plain":
        if cell.pass_name in WITH_CACHE:
            return generation.build(workload, cell, tensors)
        return plain.build(workload, dict(cell.parameters), tensors)
    if workload.family in ("llama", "qwen3"):
        from frameworks.torch.models import library_llama  # transformers takes seconds to import

        return library_llama.build(workload, cell, tensors)
    from frameworks.torch.models import library

    return library.build(workload, dict(cell.parameters), tensors)
