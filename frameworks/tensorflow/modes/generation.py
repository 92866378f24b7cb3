"""The passes with a cache: which model a cell means, and how the content of its cache is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import tensorflow as tf

from frameworks.adapter import Step, Unsupported
from frameworks.generating import LARGEST, NEXT, Generation, telling_cache
from frameworks.tensorflow.models import cached_gpt, llama
from frameworks.tensorflow.models.causal import CausalModel
from frameworks.tensorflow.models.layers import Types
from measurement.cells import Cell
from workloads.spec import Arrays, Workload

MODELS = {"llama": llama.LlamaModel, "gpt": cached_gpt.GptModel}


def build(workload: Workload, cell: Cell, weights: Arrays, types: Types) -> CausalModel:
    """Return the model of the cell's pass."""
    if cell.parameter("cache") == "dynamic":
        raise Unsupported("the cache of these models is in variables, whose shapes are fixed: CACHE=static.")
    model = MODELS[workload.family](workload, cell, weights, types)
    if cell.pass_name == "decode":
        model.remember(weights)
    return model


def keeping(model: tf.Module, cell: Cell) -> tuple[dict[str, Callable], Callable[[Callable], Callable]]:
    """Return what a step of the cell needs besides its call, and what its call becomes where the model has a cache."""
    if cell.pass_name not in ("prefill", "decode"):
        return {}, lambda call: call
    return {"restore": model.restore}, partial(telling_cache, told=model.compared)


def generating(model: CausalModel, in_mode: Callable, prompts: Sequence[tuple], places: Sequence[tf.Tensor]) -> Step:
    """Generations of the model's two parts, each `in_mode(part, input sets)`."""

    def read(input_ids: tf.Tensor) -> dict[str, tf.Tensor]:
        """Map a prompt (B, T) -> the likeliest next token and its logit, (B,)."""
        return _chosen(model.read(input_ids))

    def proceed(tokens: tf.Tensor, place: tf.Tensor) -> dict[str, tf.Tensor]:
        """Tokens (B,) at a place (1,) -> the likeliest next token and its logit, (B,)."""
        return _chosen(model.proceed(tokens, place))

    first = tf.zeros_like(prompts[0][0][:, 0]), places[0]
    return Generation(in_mode(read, prompts), in_mode(proceed, [first]), places, partial(tf.stack, axis=1)).step(
        prompts
    )


def _chosen(output: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    logits = output["logits"]
    return {NEXT: tf.argmax(logits, axis=-1), LARGEST: tf.reduce_max(logits, axis=-1)}
