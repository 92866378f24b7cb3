"""The pass generate: a model's two parts in a cell's mode, called one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import paddle
from paddle import nn

from frameworks.adapter import Step
from frameworks.generating import LARGEST, NEXT, Generation
from frameworks.paddle.llama import LlamaModel


class Reading(nn.Layer):
    """A prompt (B, T) -> the likeliest next token of each sequence and its logit, (B,)."""

    def __init__(self, model: LlamaModel):
        super().__init__()
        self.model = model

    def forward(self, input_ids):
        return _chosen(self.model.read(input_ids))


class Proceeding(nn.Layer):
    """Tokens (B,) at a place (1,) -> the likeliest next token of each sequence and its logit, (B,)."""

    def __init__(self, model: LlamaModel):
        super().__init__()
        self.model = model

    def forward(self, tokens, place):
        return _chosen(self.model.proceed(tokens, place))


def _chosen(logits):
    return paddle.argmax(logits, axis=-1), paddle.max(logits, axis=-1)


def generating(model: LlamaModel, in_mode: Callable, prompts: Sequence[tuple], places: Sequence[paddle.Tensor]) -> Step:
    """Generations of the model's two parts, each `in_mode(part, input sets, names of results)`."""
    names, first = (NEXT, LARGEST), (paddle.zeros([len(prompts[0][0])], "int64"), places[0])
    read, proceed = (in_mode(part.eval(), sets, names) for part, sets in (
        (Reading(model), prompts), (Proceeding(model), [first]),
    ))  # fmt: skip
    return Generation(read, proceed, places, partial(paddle.stack, axis=1)).step(prompts)
