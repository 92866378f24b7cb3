"""The passes with a cache: the cell's model, and how the content of its cache is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import tensorflow as tf

from frameworks.adapter import Adapter, Step, Unsupported
from frameworks.generating import LARGEST, NEXT, Generation, with_cache
from frameworks.tensorflow.models import cached_gpt, llama
from frameworks.tensorflow.models.build import build as build_model
from frameworks.tensorflow.models.causal import CausalModel
from frameworks.tensorflow.models.layers import Types
from frameworks.tensorflow.modes import graphs
from measurement.cells import Cell
from workloads.spec import Arrays, Workload

MODELS = {"llama": llama.LlamaModel, "gpt": cached_gpt.GptModel}


def build(workload: Workload, cell: Cell, weights: Arrays, types: Types) -> CausalModel:
    """Return the model of the cell's pass."""
    if cell.parameter("cache") == "dynamic":
        raise Unsupported("this model keeps its cache in variables of fixed shape: choose KV_CACHE=static.")
    model = MODELS[workload.family](workload, cell, weights, types)
    if cell.pass_name == "decode":
        model.remember(weights)
    return model


def prepare(adapter: Adapter, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
    """Return the step of the cell's pass in its mode."""
    model, sets = build_model(workload, cell, weights), [adapter.place(cell, arrays) for arrays in inputs]
    if cell.pass_name == "generate":
        places = [tf.constant(place) for place in workload.places_given(dict(cell.parameters))]
        return generating(model, partial(graphs.in_mode, workload, cell), sets, places)
    outer = partial(with_cache, cached=model.compared)
    return graphs.in_mode(workload, cell, model, sets, outer, {"restore": model.restore})


def generating(model: CausalModel, in_mode: Callable, prompts: Sequence[tuple], places: Sequence[tf.Tensor]) -> Step:
    """Return generations of the model's two parts, each `in_mode(part, input sets)`."""

    def read(input_ids: tf.Tensor) -> dict[str, tf.Tensor]:
        """Map a prompt (B, T) -> the likeliest next token and its logit, (B,)."""
        return _chosen(model.read(input_ids))

    def proceed(tokens: tf.Tensor, place: tf.Tensor) -> dict[str, tf.Tensor]:
        """Map tokens (B,) at a place (1,) -> the likeliest next token and its logit, (B,)."""
        return _chosen(model.proceed(tokens, place))

    first = tf.zeros_like(prompts[0][0][:, 0]), places[0]
    return Generation(in_mode(read, prompts), in_mode(proceed, [first]), places, partial(tf.stack, axis=1)).step(
        prompts
    )


def _chosen(output: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    logits = output["logits"]
    return {NEXT: tf.argmax(logits, axis=-1), LARGEST: tf.reduce_max(logits, axis=-1)}
