"""Llama as `tf.Module`s with a static cache in variables, operator for operator as in the other frameworks' files."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from frameworks.tensorflow.models import causal
from frameworks.tensorflow.models.layers import Types
from frameworks.tensorflow.models.matrices import Matrix, product, stored
from measurement.cells import Cell
from workloads.llama import EMBEDDING, HEAD, LAST_NORM, NORM_EPSILON, Llama
from workloads.matrices import NONE
from workloads.spec import Arrays, Workload


class Block(causal.Block):
    """Attention and a gated perceptron, each behind a norm and added to the residual.

    Products that share their input are one, and kernels are (in, out).
    """

    def __init__(self, model: Llama, weights: Arrays, prefix: str, batch: int, places: int, dtype: tf.DType):
        super().__init__(model, batch, places, dtype)

        def taken(*names: str, kind: str = model.quant) -> tf.Variable | Matrix:
            return stored(np.concatenate([weights[f"{prefix}.{name}.weight"] for name in names]), kind, dtype)

        self.input_norm = taken("input_layernorm", kind=NONE)
        self.qkv = taken("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")  # (H, (nh + 2 nkv) * hs)
        self.output = taken("self_attn.o_proj")
        self.inner_norm = taken("post_attention_layernorm", kind=NONE)
        self.gate_up = taken("mlp.gate_proj", "mlp.up_proj")
        self.down = taken("mlp.down_proj")

    def projected(self, x: tf.Tensor, turn: tuple, form: str) -> list[tf.Tensor]:
        """Map (rows, H) -> turned queries (rows, nh, hs) and keys (rows, nkv, hs), and values."""
        qkv = tf.reshape(product(norm(x, self.input_norm), self.qkv, form), (x.shape[0], -1, self.head_size))
        qk, v = tf.split(qkv, [self.heads + self.kv_heads, self.kv_heads], axis=1)
        cosines, sines = turn  # (rows or 1, 1, hs)
        qk = qk * cosines + tf.roll(qk, self.head_size // 2, axis=-1) * sines
        return [*tf.split(qk, [self.heads, self.kv_heads], axis=1), v]

    def fed_forward(self, x: tf.Tensor, context: tf.Tensor, form: str) -> tf.Tensor:
        x = x + product(context, self.output, form)  # (rows, H)
        gate, up = tf.split(product(norm(x, self.inner_norm), self.gate_up, form), 2, axis=-1)  # (rows, I)
        return x + product(tf.nn.silu(gate) * up, self.down, form)


class LlamaModel(causal.CausalModel):
    """A Llama with its cache."""

    def __init__(self, workload: Workload, cell: Cell, weights: Arrays, types: Types):
        super().__init__(workload, cell, weights, types)
        model, dtype = workload.model.given(dict(cell.parameters)), types.variables
        self.embedding = tf.Variable(weights[EMBEDDING], dtype=dtype, trainable=False)
        self.head = self.embedding if model.tied else stored(weights[HEAD], model.quant, dtype)
        self.tied, self.form = model.tied, model.product
        self.blocks = [
            Block(model, weights, f"model.layers.{layer}", self.batch, self.places, dtype)
            for layer in range(model.layers)
        ]
        self.last_norm = tf.Variable(weights[LAST_NORM], dtype=dtype, trainable=False)
        # Variables, for a graph would hold tensors as constants.
        self.turns = [tf.Variable(t, dtype=dtype, trainable=False) for t in model.rotary(np.arange(self.places))]

    def embedded(self, ids: tf.Tensor, place: tf.Tensor | None) -> tuple[tf.Tensor, tuple]:
        x = tf.gather(self.embedding, ids)  # (..., H)
        if place is not None:
            return x, tuple(tf.gather(table, place)[:, None] for table in self.turns)  # (1, 1, hs)
        batch, length = ids.shape
        tables = (table if self.places == length else table[:length] for table in self.turns)
        turn = tuple(tf.tile(table, (batch, 1))[:, None] for table in tables)  # (B * T, 1, hs)
        return tf.reshape(x, (batch * length, -1)), turn

    def logits(self, x: tf.Tensor) -> tf.Tensor:
        return product(norm(x, self.last_norm), self.head, self.form, transposed=self.tied)


def norm(x: tf.Tensor, weight: tf.Variable) -> tf.Tensor:
    """Return the RMS norm, composed of simpler operators, in float32 whatever the dtype."""
    wide = tf.cast(x, tf.float32)
    wide = wide * tf.math.rsqrt(tf.reduce_mean(tf.square(wide), axis=-1, keepdims=True) + NORM_EPSILON)
    return tf.cast(wide, x.dtype) * weight
