"""The workloads: definitions of computations. `names()` is cheap; `get` imports NumPy and the workload's file."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from workloads.passes import PASSES as PASSES
from workloads.passes import WITH_CACHE

if TYPE_CHECKING:
    from workloads.spec import Workload
    from workloads.user_model import UserModel

# name -> module; a module holds its workloads in WORKLOADS, by name.
_MODULES = dict.fromkeys(("bert-base", "bert-24", "bert-48", "bert-tiny"), "bert")
_MODULES |= {"mlp": "mlp", "matmul": "matmul", "matvec": "matmul"}
_MODULES |= {"gpt2-124m": "gpt", "gpt-10m": "gpt", "gpt-tiny": "gpt"}
_MODULES |= dict.fromkeys(("llama-tiny", "llama-1b", "llama-7b", "llama-8b", "qwen3-tiny", "qwen3-0.6b"), "llama")
_MODULES |= {"resnet50": "resnet", "resnet-tiny": "resnet", "vit-b16": "vit", "vit-tiny": "vit"}
_MODULES |= {"lstm": "lstm", "lstm-tiny": "lstm"}
_MODULES |= dict.fromkeys(("pointwise-chain", "fused-cos", "stream", "op-overhead"), "pointwise")


# User models of this process by name, registered by `add`.
_USER_MODELS: dict[str, UserModel] = {}


def names() -> tuple[str, ...]:
    """Return the names of all workloads, user models last."""
    return (*_MODULES, *_USER_MODELS)


def add(sources: Mapping[str, str]) -> None:
    """Register user models: their files or libraries' names, by name. Raises `workloads.signature.Unreadable`."""
    from workloads import user_model

    for name, source in sources.items():
        if name not in _USER_MODELS or _USER_MODELS[name].source != source:
            _USER_MODELS[name] = user_model.workload(name, source)


def source_of(name: str) -> str | None:
    """Return the source of a user model; None for a workload of the suite."""
    return _USER_MODELS[name].source if name in _USER_MODELS else None


def get(name: str, pass_name: str = "inference") -> Workload:
    """Return the workload `name`, which is one of `names()`, in one of its passes."""
    if name in _USER_MODELS:
        return _USER_MODELS[name].trained() if pass_name == "training" else _USER_MODELS[name]
    workload: Workload = importlib.import_module(f"workloads.{_MODULES[name]}").WORKLOADS[name]
    if pass_name == "training":
        from workloads.training import training_of

        return training_of(workload)
    if pass_name in workload.passes and pass_name in WITH_CACHE:
        return _with_cache(workload, pass_name)
    return workload  # a workload is its own inference pass


def flags_of(name: str, pass_name: str) -> set[str]:
    """Return the flags that a workload's parameters have in a pass; none if it lacks the pass."""
    definition = get(name, pass_name)
    return {parameter.flag for parameter in definition.parameters} if pass_name in definition.passes else set()


def _with_cache(workload: Workload, pass_name: str) -> Workload:
    """Return the workload in one of the passes that have a cache."""
    from workloads import cached_gpt, causal, decode, generate, gpt

    model = cached_gpt.cached(workload) if isinstance(workload, gpt.Gpt) else workload
    assert isinstance(model, causal.Causal), f"{workload.name} has a pass with a cache, and is no model with one"
    if pass_name == "prefill":
        return model
    return decode.decode_of(model) if pass_name == "decode" else generate.generate_of(model)
