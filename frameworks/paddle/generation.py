"""The passes with a cache: which model a cell means, and generations of its two parts in the cell's mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import paddle
from paddle import nn

from frameworks.adapter import Step, Unsupported
from frameworks.generating import LARGEST, NEXT, Generation
from frameworks.paddle import cached_gpt, llama
from frameworks.paddle.causal import CausalModel
from measurement.cells import Cell
from workloads.spec import Arrays, Workload

MODELS = {"llama": llama.LlamaModel, "gpt": cached_gpt.GptModel}


def build(workload: Workload, cell: Cell, weights: Arrays) -> CausalModel:
    """The model of the cell's pass. Raises `Unsupported` where the cell asks for what it does not have."""
    if cell.parameter("attention") == "fused":
        raise Unsupported("This model has no fused attention in Paddle yet: ATTENTION=explicit.")
    if cell.parameter("cache") == "dynamic":
        raise Unsupported("The cache of these models is in buffers, whose shapes are fixed: CACHE=static.")
    batch, places = int(cell.parameter("batch_size")), workload.places(dict(cell.parameters))
    given = workload.model.given(dict(cell.parameters))
    model = MODELS[workload.family](workload, given, weights, cell.pass_name, batch, places)
    if cell.pass_name == "decode":
        model.remember(weights)
    return model


class Reading(nn.Layer):
    """A prompt (B, T) -> the likeliest next token of each sequence and its logit, (B,)."""

    def __init__(self, model: CausalModel):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return _chosen(self.model.read(input_ids))


class Proceeding(nn.Layer):
    """Tokens (B,) at a place (1,) -> the likeliest next token of each sequence and its logit, (B,)."""

    def __init__(self, model: CausalModel):
        super().__init__()
        self.model = model

    def forward(self, tokens, place):
        return _chosen(self.model.proceed(tokens, place))


def _chosen(logits):
    return paddle.argmax(logits, axis=-1), paddle.max(logits, axis=-1)


def generating(
    model: CausalModel, in_mode: Callable, prompts: Sequence[tuple], places: Sequence[paddle.Tensor]
) -> Step:
    """Generations of the model's two parts, each `in_mode(part, input sets, names of results)`."""
    names, first = (NEXT, LARGEST), (paddle.zeros([len(prompts[0][0])], "int64"), places[0])
    read, proceed = (in_mode(part.eval(), sets, names) for part, sets in (
        (Reading(model), prompts), (Proceeding(model), [first]),
    ))  # fmt: skip
    return Generation(read, proceed, places, partial(paddle.stack, axis=1)).step(prompts)
