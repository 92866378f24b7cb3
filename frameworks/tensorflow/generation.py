"""The passes prefill and decode: which model a cell means, and how the content of its cache is told."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import tensorflow as tf

from frameworks.tensorflow import llama
from frameworks.tensorflow.layers import Types
from measurement.cells import Cell
from workloads.spec import Arrays, Workload

MODELS = {"prefill": llama.Prefill, "decode": llama.Decode}


def build(workload: Workload, cell: Cell, weights: Arrays, types: Types) -> tf.Module:
    """The model of the cell's pass."""
    return MODELS[cell.pass_name](workload, cell, weights, types)


def keeping(model: tf.Module, cell: Cell) -> tuple[dict[str, Callable], Callable[[Callable], Callable]]:
    """What a step of the cell needs besides its call, and what its call becomes where the model has a cache."""
    if cell.pass_name not in MODELS:
        return {}, lambda call: call
    return {"restore": model.restore}, partial(telling_cache, model=model)


def telling_cache(call: Callable, model: tf.Module) -> Callable:
    """`call`, whose output tells as well what is in the model's cache where that is compared: once it is asked for."""

    def called(*inputs: tf.Tensor) -> dict[str, Any]:
        return {**call(*inputs), "cache": partial(model.compared, inputs[-1])}

    return called


def tensors(output: Any) -> Any:
    """The output with what the cache holds now, where the model has one."""
    if not isinstance(output, dict) or not callable(output.get("cache")):
        return output
    return {name: tensor for name, tensor in output.items() if name != "cache"} | output["cache"]()
