"""Llama written with `paddle.nn` and a static cache, operator for operator as in the other frameworks' files."""

from __future__ import annotations

from functools import partial

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from frameworks.paddle.models import causal, matrices
from frameworks.paddle.models.causal import parameter
from workloads.llama import EMBEDDING, HEAD, LAST_NORM, NORM_EPSILON, Llama
from workloads.matrices import NONE
from workloads.spec import Arrays


class Block(causal.Block):
    """Attention and a gated perceptron, each behind a norm and added to the residual.

    Products that share their input are one.
    """

    def __init__(self, model: Llama, weights: Arrays, prefix: str, batch: int, places: int):
        super().__init__(model, batch, places)
        attention, mlp = f"{prefix}.self_attn", f"{prefix}.mlp"
        linear = partial(self.linear, weights, quant=model.quant, form=model.product)
        self.input_norm = parameter(self, weights[f"{prefix}.input_layernorm.weight"])
        self.qkv = linear(*(f"{attention}.{name}_proj" for name in "qkv"))  # (H, (nh + 2 nkv) * hs)
        self.output = linear(f"{attention}.o_proj")
        self.inner_norm = parameter(self, weights[f"{prefix}.post_attention_layernorm.weight"])
        self.gate_up = linear(f"{mlp}.gate_proj", f"{mlp}.up_proj")
        self.down = linear(f"{mlp}.down_proj")

    def projected(self, x, turn):
        """Map (..., H) -> turned queries (..., nh, hs) and keys (..., nkv, hs), and values."""
        cosines, sines = turn
        qkv = self.qkv(norm(x, self.input_norm))
        qkv = qkv.reshape([0] * (x.ndim - 1) + [-1, self.head_size])
        qk, v = qkv.split([self.heads + self.kv_heads, self.kv_heads], axis=-2)
        qk = qk * cosines + paddle.roll(qk, self.head_size // 2, axis=-1) * sines
        q, k = qk.split([self.heads, self.kv_heads], axis=-2)
        return q, k, v

    def fed_forward(self, x, context):
        x = x + self.output(context)  # (..., H)
        gate, up = self.gate_up(norm(x, self.inner_norm)).split(2, axis=-1)  # (..., I)
        return x + self.down(F.silu(gate) * up)


class LlamaModel(causal.CausalModel):
    """A Llama with its cache."""

    def __init__(self, model: Llama, weights: Arrays, batch: int, places: int):
        super().__init__(places)
        self.form = model.product
        self.embedding = parameter(self, weights[EMBEDDING])
        if model.tied or model.quant == NONE:
            self.head = self.embedding if model.tied else parameter(self, weights[HEAD])
        else:
            self.head = matrices.Linear(weights[HEAD], model.quant, model.product)
        blocks = (Block(model, weights, f"model.layers.{i}", batch, places) for i in range(model.layers))
        self.blocks = nn.LayerList(blocks)
        self.last_norm = parameter(self, weights[LAST_NORM])
        for name, table in zip(("cosines", "sines"), model.rotary(np.arange(places)), strict=True):
            self.register_buffer(name, paddle.to_tensor(table, self.embedding.dtype))  # (C, hs)

    def embedded(self, ids, place):
        x, tables = F.embedding(ids, self.embedding), (self.cosines, self.sines)
        if place is not None:
            return x, [paddle.gather(table, place) for table in tables]  # (1, hs)
        length = ids.shape[1]
        tables = (table if self.places == length else table[:length] for table in tables)
        return x, [table.unsqueeze(1) for table in tables]  # (T, 1, hs)

    def logits(self, x):
        x = norm(x, self.last_norm)
        if isinstance(self.head, nn.Layer):
            return self.head(x)
        return matrices.product(x, self.head, self.form, transposed=True)


def norm(x, weight):
    """Return the RMS norm, composed of simpler operators, in float32 whatever the dtype."""
    wide = x.astype("float32")
    wide = wide * paddle.rsqrt(paddle.mean(paddle.square(wide), axis=-1, keepdim=True) + NORM_EPSILON)
    return wide.astype(x.dtype) * weight
