"""Choice of a cell's model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from frameworks.torch.models import plain
from frameworks.torch.modes import generation
from measurement.cells import Cell
from workloads.passes import WITH_CACHE
from workloads.spec import Workload


class Uninitialised(TorchFunctionMode):
    """Omit `torch.nn.init`: weights replace every tensor, and torch imports its compiler to draw without storage."""

    def __torch_function__(self, func: Callable, types: Any, args: tuple = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", "") == "torch.nn.init":
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


def build(workload: Workload, cell: Cell, tensors: dict[str, torch.Tensor]) -> torch.nn.Module:
    """Return the cell's model with these weights. Raises `Unsupported` where there is none."""
    with Uninitialised():
        return _built(workload, cell, tensors)


def _built(workload: Workload, cell: Cell, tensors: dict[str, torch.Tensor]) -> torch.nn.Module:
    if cell.implementation == "plain":
        if cell.pass_name in WITH_CACHE:
            return generation.build(workload, cell, tensors)
        return plain.build(workload, dict(cell.parameters), tensors)
    if workload.family in ("llama", "qwen3"):
        from frameworks.torch.models import library_llama  # transformers takes seconds to import

        return library_llama.build(workload, cell, tensors)
    from frameworks.torch.models import library

    return library.build(workload, dict(cell.parameters), tensors)
