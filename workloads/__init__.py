"""The workloads: what is computed. `names()` is cheap; `get` imports NumPy and the workload's file."""

from __future__ import annotations

import importlib

PASSES = ("inference", "training", "prefill", "decode")
# name -> module; a module holds its workloads in WORKLOADS, by name.
_MODULES = {"bert-base": "bert", "bert-tiny": "bert", "mlp": "mlp", "matmul": "matmul", "pointwise-chain": "pointwise"}
_MODULES |= {"gpt2-124m": "gpt", "gpt-10m": "gpt", "gpt-tiny": "gpt"}
_MODULES |= dict.fromkeys(("llama-tiny", "llama-1b", "llama-7b", "llama-8b"), "llama")
_MODULES |= {"resnet50": "resnet", "resnet-tiny": "resnet", "vit-b16": "vit", "vit-tiny": "vit"}
_MODULES |= {"lstm": "lstm", "lstm-tiny": "lstm"}
_MODULES |= {"fused-cos": "pointwise", "stream": "pointwise", "op-overhead": "overhead"}


def names() -> tuple[str, ...]:
    """The names of all workloads."""
    return tuple(_MODULES)


def get(name: str, pass_name: str = "inference"):
    """The workload `name`, which is one of `names()`, in one of its passes."""
    workload = importlib.import_module(f"workloads.{_MODULES[name]}").WORKLOADS[name]
    if pass_name == "training":
        from workloads.training import training_of

        return training_of(workload)
    if pass_name == "decode" and "decode" in workload.passes:
        from workloads.decode import decode_of

        return decode_of(workload)
    return workload  # a workload is in itself its inference pass, or its prefill
