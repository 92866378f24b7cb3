"""Llama as `tf.Module`s with a static cache in variables, operator for operator as in the other frameworks' files."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from frameworks.tensorflow.layers import Types
from measurement.cells import Cell
from workloads.decode import PAST, STEPS
from workloads.llama import EMBEDDING, HEAD, LAST_NORM, NORM_EPSILON, Llama
from workloads.spec import Arrays, Workload


class Block(tf.Module):
    """Causal self-attention over a cache and a gated perceptron, each behind a norm and added to the residual.

    Products that have their input in common are one, and kernels are (in, out). States are 2-D, (B * T, H). The cache
    holds keys and values as (B, nkv, C, hs).
    """

    def __init__(self, model: Llama, weights: Arrays, prefix: str, batch: int, places: int, dtype: tf.DType):
        super().__init__()
        self.heads, self.kv_heads, self.head_size = model.heads, model.kv_heads, model.head_size

        def taken(*names: str) -> tf.Variable:
            tensors = [weights[f"{prefix}.{name}.weight"] for name in names]
            return tf.Variable(np.concatenate(tensors).T, dtype=dtype, trainable=False)

        self.input_norm = taken("input_layernorm")
        self.qkv = taken("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")  # (H, (nh + 2 nkv) * hs)
        self.output = taken("self_attn.o_proj")
        self.inner_norm = taken("post_attention_layernorm")
        self.gate_up = taken("mlp.gate_proj", "mlp.up_proj")
        self.down = taken("mlp.down_proj")
        shape = (batch, self.kv_heads, places, self.head_size)
        self.keys, self.values = (tf.Variable(tf.zeros(shape, dtype), trainable=False) for _ in range(2))

    def decode(self, x: tf.Tensor, turn: tuple, slots: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """States (B, H) of a token a sequence; `slots` (B, nkv, 3) are its places, `mask` (C,) is added to scores."""
        q, k, v = self._projected(x, turn)  # (B, nh, hs), (B, nkv, hs) twice
        keys = self.keys.scatter_nd_update(slots, k)
        values = self.values.scatter_nd_update(slots, v)
        q = tf.reshape(q, (x.shape[0], self.kv_heads, -1, self.head_size)) * self.head_size**-0.5
        scores = tf.matmul(q, keys, transpose_b=True) + mask  # (B, nkv, nh / nkv, C)
        context = tf.matmul(tf.nn.softmax(scores), values)  # (B, nkv, nh / nkv, hs)
        return self._fed_forward(x, tf.reshape(context, x.shape))

    def prefill(self, x: tf.Tensor, turn: tuple, batch: int, length: int) -> tf.Tensor:
        """States (B * T, H) of prompts, each of which fills the cache."""
        q, k, v = (
            tf.transpose(tf.reshape(y, (batch, length, -1, self.head_size)), (0, 2, 1, 3))
            for y in self._projected(x, turn)
        )  # (B, n, T, hs)
        for cache, new in ((self.keys, k), (self.values, v)):
            if cache.shape[2] == length:
                cache.assign(new)
            else:
                cache[:, :, :length].assign(new)
        q = tf.reshape(q, (batch, self.kv_heads, -1, self.head_size)) * self.head_size**-0.5
        scores = tf.reshape(tf.matmul(q, k, transpose_b=True), (batch, self.kv_heads, -1, length, length))
        attended = tf.linalg.band_part(tf.ones((length, length), tf.bool), -1, 0)  # (T, T)
        shares = tf.nn.softmax(tf.where(attended, scores, tf.constant(-math.inf, scores.dtype)))
        context = tf.matmul(tf.reshape(shares, (batch, self.kv_heads, -1, length)), v)  # (B, nkv, nh / nkv * T, hs)
        context = tf.transpose(tf.reshape(context, (batch, self.heads, length, self.head_size)), (0, 2, 1, 3))
        return self._fed_forward(x, tf.reshape(context, x.shape))

    def _projected(self, x: tf.Tensor, turn: tuple) -> list[tf.Tensor]:
        """(rows, H) -> turned queries (rows, nh, hs) and keys (rows, nkv, hs), and values."""
        qkv = tf.reshape(tf.matmul(norm(x, self.input_norm), self.qkv), (x.shape[0], -1, self.head_size))
        qk, v = tf.split(qkv, [self.heads + self.kv_heads, self.kv_heads], axis=1)
        cosines, sines = turn  # (rows or 1, 1, hs)
        qk = qk * cosines + tf.roll(qk, self.head_size // 2, axis=-1) * sines
        return [*tf.split(qk, [self.heads, self.kv_heads], axis=1), v]

    def _fed_forward(self, x: tf.Tensor, context: tf.Tensor) -> tf.Tensor:
        x = x + tf.matmul(context, self.output)  # (rows, H)
        gate, up = tf.split(tf.matmul(norm(x, self.inner_norm), self.gate_up), 2, axis=-1)  # (rows, I)
        return x + tf.matmul(tf.nn.silu(gate) * up, self.down)


class LlamaModel(tf.Module):
    """A Llama with its cache."""

    def __init__(self, workload: Workload, cell: Cell, weights: Arrays, types: Types):
        super().__init__()
        model, self.workload, self.cell, dtype = workload.model, workload, cell, types.variables
        self.batch = int(cell.parameter("batch_size"))
        self.places = workload.places(dict(cell.parameters))
        self.embedding = tf.Variable(weights[EMBEDDING], dtype=dtype, trainable=False)
        self.head = self.embedding if model.tied else tf.Variable(weights[HEAD], dtype=dtype, trainable=False)
        self.blocks = [
            Block(model, weights, f"model.layers.{layer}", self.batch, self.places, dtype)
            for layer in range(model.layers)
        ]
        self.last_norm = tf.Variable(weights[LAST_NORM], dtype=dtype, trainable=False)
        # Variables, for a graph would hold tensors as constants.
        self.turns = [tf.Variable(t, dtype=dtype, trainable=False) for t in model.rotary(np.arange(self.places))]
        # Which places a token of each sequence and head has, but for its own: (B, nkv, 3), the last 0.
        indices = np.stack(np.meshgrid(range(self.batch), range(model.kv_heads), 0, indexing="ij"), -1)
        self._slots = tf.constant(indices[:, :, 0], tf.int64)

    def read(self, input_ids: tf.Tensor) -> dict[str, tf.Tensor]:
        """A prompt (B, T), int64, into the cache -> logits of the next token (B, V)."""
        batch, length = input_ids.shape
        tables = (table if self.places == length else table[:length] for table in self.turns)
        turn = [tf.tile(table, (batch, 1))[:, None] for table in tables]  # (B * T, 1, hs)
        x = tf.reshape(tf.gather(self.embedding, input_ids), (batch * length, -1))  # (B * T, H)
        for block in self.blocks:
            x = block.prefill(x, turn, batch, length)
        return self.logits(tf.reshape(x, (batch, length, -1))[:, -1])

    def proceed(self, tokens: tf.Tensor, place: tf.Tensor) -> dict[str, tf.Tensor]:
        """`tokens` (B,) and their place (1,), int64 -> logits of the next token (B, V)."""
        slots = self._slots + place * tf.constant([0, 0, 1], tf.int64)
        dtype = self.embedding.dtype
        future = tf.range(self.places, dtype=tf.int64) > place  # (C,)
        mask = tf.where(future, tf.constant(-math.inf, dtype), tf.constant(0, dtype))
        turn = [tf.gather(table, place)[:, None] for table in self.turns]  # (1, 1, hs)
        x = tf.gather(self.embedding, tokens)  # (B, H)
        for block in self.blocks:
            x = block.decode(x, turn, slots, mask)
        return self.logits(x)

    def logits(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        """(B, H) -> (B, V)."""
        return {"logits": tf.matmul(norm(x, self.last_norm), self.head, transpose_b=True)}

    def cached(self, places: tf.Tensor) -> dict[str, tf.Tensor]:
        """What the cache holds at some places (n,): keys and values, (layers, B, nkv, n, hs)."""
        return {
            name: tf.stack([tf.gather(getattr(block, name), places, axis=2) for block in self.blocks])
            for name in ("keys", "values")
        }


class Prefill(LlamaModel):
    """Reads a prompt."""

    def __call__(self, input_ids: tf.Tensor) -> dict[str, tf.Tensor]:
        """`input_ids` (B, T), int64 -> logits of the next token (B, V)."""
        return self.read(input_ids)

    def restore(self) -> None:
        """A prompt writes all of the cache anew."""

    def compared(self, _: tf.Tensor) -> dict[str, tf.Tensor]:
        """The cache after a call on this input, where it is compared."""
        return self.cached(self.workload.places_compared(dict(self.cell.parameters)))


class Decode(LlamaModel):
    """Takes one token after the other."""

    def __init__(self, workload: Workload, cell: Cell, weights: Arrays, types: Types):
        super().__init__(workload, cell, weights, types)
        self._first = []  # what calls write over
        for layer, block in enumerate(self.blocks):
            for cache, name in zip((block.keys, block.values), PAST, strict=True):
                past = tf.constant(weights[name][layer][None], cache.dtype)  # (1, nkv, C, hs)
                cache.assign(tf.tile(past, (self.batch, 1, 1, 1)))
                self._first.append((cache, past[:, :, -STEPS:]))

    def __call__(self, tokens: tf.Tensor, place: tf.Tensor) -> dict[str, tf.Tensor]:
        """`tokens` (B,) and their place (1,), int64 -> logits of the next token (B, V)."""
        return self.proceed(tokens, place)

    def restore(self) -> None:
        """Put back what the cache held before the first call."""
        for cache, first in self._first:
            cache[:, :, -STEPS:].assign(tf.tile(first, (self.batch, 1, 1, 1)))

    def compared(self, place: tf.Tensor) -> dict[str, tf.Tensor]:
        """The cache after a call on this input, where it is compared."""
        return self.cached(tf.concat((place - 1, place), 0))


def norm(x: tf.Tensor, weight: tf.Variable) -> tf.Tensor:
    """RMS normalisation from TensorFlow's parts, which has no operator for it; in float32 whatever the dtype."""
    wide = tf.cast(x, tf.float32)
    wide = wide * tf.math.rsqrt(tf.reduce_mean(tf.square(wide), axis=-1, keepdims=True) + NORM_EPSILON)
    return tf.cast(wide, x.dtype) * weight
