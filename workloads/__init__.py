"""The workloads: what is computed. `names()` is cheap; `get` imports NumPy and the workload's file."""

from __future__ import annotations

import importlib

PASSES = ("inference", "training")
# name -> module; a module holds its workloads in WORKLOADS, by name.
_MODULES = {"bert-base": "bert", "bert-tiny": "bert", "mlp": "mlp", "matmul": "matmul", "pointwise-chain": "pointwise"}
_MODULES |= {"gpt2-124m": "gpt", "gpt-10m": "gpt", "gpt-tiny": "gpt"}
_MODULES |= {"resnet50": "resnet", "resnet-tiny": "resnet", "vit-b16": "vit", "vit-tiny": "vit"}
_MODULES |= {"lstm": "lstm", "lstm-tiny": "lstm"}
_MODULES |= {"fused-cos": "pointwise", "stream": "pointwise", "op-overhead": "overhead"}


def names() -> tuple[str, ...]:
    """The names of all workloads."""
    return tuple(_MODULES)


def get(name: str, pass_name: str = "inference"):
    """The workload `name`, which is one of `names()`, in one of its passes."""
    workload = importlib.import_module(f"workloads.{_MODULES[name]}").WORKLOADS[name]
    if pass_name == "inference":
        return workload
    from workloads.training import training_of

    return training_of(workload)
