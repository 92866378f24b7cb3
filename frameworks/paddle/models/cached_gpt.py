"""GPT written with `paddle.nn` and a static cache, operator for operator as in the other frameworks' files."""

from __future__ import annotations

import paddle
import paddle.nn.functional as F
from paddle import nn

from frameworks.paddle.models import causal
from frameworks.paddle.models.causal import parameter
from workloads.cached_gpt import CachedGpt
from workloads.gpt import LAYER_NORM_EPSILON
from workloads.spec import Arrays


class Block(causal.Block):
    """Attention and a two-layer perceptron, each behind a layer norm and added to the residual."""

    def __init__(self, model: CachedGpt, weights: Arrays, prefix: str, batch: int, places: int):
        super().__init__(model, batch, places)
        self.ln_1 = parameter(self, weights[f"{prefix}.ln_1.weight"])
        self.qkv = self.linear(weights, f"{prefix}.attn.c_attn")
        self.output = self.linear(weights, f"{prefix}.attn.c_proj")
        self.ln_2 = parameter(self, weights[f"{prefix}.ln_2.weight"])
        self.expand = self.linear(weights, f"{prefix}.mlp.c_fc")
        self.contract = self.linear(weights, f"{prefix}.mlp.c_proj")

    def projected(self, x, turn):
        qkv = self.qkv(norm(x, self.ln_1)).reshape([0] * (x.ndim - 1) + [-1, self.head_size])  # (..., 3 nh, hs)
        return qkv.split(3, axis=-2)

    def fed_forward(self, x, context):
        x = x + self.output(context)  # (..., H)
        return x + self.contract(F.gelu(self.expand(norm(x, self.ln_2))))  # the exact GELU


class GptModel(causal.CausalModel):
    """A GPT with tied embeddings, and its cache."""

    def __init__(self, model: CachedGpt, weights: Arrays, batch: int, places: int):
        super().__init__(places)
        self.words, self.positions, self.last_norm = (
            parameter(self, weights[f"{name}.weight"]) for name in ("wte", "wpe", "ln_f")
        )
        self.blocks = nn.LayerList(Block(model, weights, f"h.{i}", batch, places) for i in range(model.layers))

    def embedded(self, ids, place):
        """Return states (..., H) without a rotation: each position has its own embedding."""
        places = paddle.arange(ids.shape[1]) if place is None else place  # (T,) or (1,)
        return F.embedding(ids, self.words) + F.embedding(places, self.positions), None  # (..., H)

    def logits(self, x):
        return paddle.matmul(norm(x, self.last_norm), self.words, transpose_y=True)


def norm(x, weight):
    return F.layer_norm(x, x.shape[-1], weight, None, LAYER_NORM_EPSILON)
