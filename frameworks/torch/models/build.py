"""Which model a cell means."""

from __future__ import annotations

import torch

from frameworks.adapter import Unsupported
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
    try:  # transformers takes seconds to import
        if workload.family == "bert":
            from frameworks.torch.models import library

            return library.build(workload, tensors)
        if workload.family == "llama":
            from frameworks.torch.models import library_llama

            return library_llama.build(workload, cell, tensors)
        from frameworks.torch.models import library_images
    except ImportError as error:
        raise Unsupported(f"the library implementation needs the package transformers: {error}.") from error
    return library_images.build(workload, dict(cell.parameters), tensors)
