"""The workloads: what is computed. `names()` is cheap; `get` imports NumPy and the workload's file."""

from __future__ import annotations

import importlib

# name -> module; a module holds its workloads in WORKLOADS, by name.
_MODULES = {"bert-base": "bert", "bert-tiny": "bert", "mlp": "mlp", "matmul": "matmul", "pointwise-chain": "pointwise"}
_MODULES |= {"fused-cos": "pointwise", "op-overhead": "overhead"}


def names() -> tuple[str, ...]:
    """The names of all workloads."""
    return tuple(_MODULES)


def get(name: str):
    """The workload `name`, which is one of `names()`."""
    return importlib.import_module(f"workloads.{_MODULES[name]}").WORKLOADS[name]
