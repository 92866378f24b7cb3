"""Models with a static cache in variables, for any kind of block: attention, and the passes' modules."""

from __future__ import annotations

import math

import numpy as np
import tensorflow as tf

from frameworks.tensorflow.models.layers import Types
from measurement.cells import Cell
from workloads.causal import Causal
from workloads.decode import PAST, STEPS
from workloads.matrices import MATMUL
from workloads.spec import Arrays, Workload


class Block(tf.Module):
    """Causal self-attention over a cache. `projected` and `fed_forward` are those of a kind of model.

    States are 2-D, (B * T, H). The cache holds keys and values as (B, nkv, C, hs).
    """

    def __init__(self, model: Causal, batch: int, places: int, dtype: tf.DType):
        super().__init__()
        self.heads, self.kv_heads, self.head_size = model.heads, model.kv_heads, model.head_size
        self.form = model.product
        shape = (batch, self.kv_heads, places, self.head_size)
        self.keys, self.values = (tf.Variable(tf.zeros(shape, dtype), trainable=False) for _ in range(2))

    def projected(self, x: tf.Tensor, turn: tuple, form: str) -> list[tf.Tensor]:
        """Map (rows, H) -> queries (rows, nh, hs), keys and values (rows, nkv, hs), by products in this form."""
        raise NotImplementedError

    def fed_forward(self, x: tf.Tensor, context: tf.Tensor, form: str) -> tf.Tensor:
        """Map states and attention's context, (rows, H) -> the block's states, by products in this form."""
        raise NotImplementedError

    def decode(self, x: tf.Tensor, turn: tuple, slots: tf.Tensor, mask: tf.Tensor) -> tf.Tensor:
        """Map states (B, H) of a token at `slots` (B, nkv, 3) -> the block's; `mask` (C,) is added to scores."""
        q, k, v = self.projected(x, turn, self.form)  # (B, nh, hs), (B, nkv, hs) twice
        keys = self.keys.scatter_nd_update(slots, k)
        values = self.values.scatter_nd_update(slots, v)
        q = tf.reshape(q, (x.shape[0], self.kv_heads, -1, self.head_size)) * self.head_size**-0.5
        scores = tf.matmul(q, keys, transpose_b=True) + mask  # (B, nkv, nh / nkv, C)
        context = tf.matmul(tf.nn.softmax(scores), values)  # (B, nkv, nh / nkv, hs)
        return self.fed_forward(x, tf.reshape(context, x.shape), self.form)

    def prefill(self, x: tf.Tensor, turn: tuple, batch: int, length: int) -> tf.Tensor:
        """Return states (B * T, H) of prompts, each of which fills the cache."""
        q, k, v = (
            tf.transpose(tf.reshape(y, (batch, length, -1, self.head_size)), (0, 2, 1, 3))
            for y in self.projected(x, turn, MATMUL)
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
        return self.fed_forward(x, tf.reshape(context, x.shape), MATMUL)


class CausalModel(tf.Module):
    """Blocks between a kind of model's embeddings and its logits, each with its cache."""

    def __init__(self, workload: Workload, cell: Cell, weights: Arrays, types: Types):
        super().__init__()
        self.workload, self.cell, self.dtype = workload, cell, types.variables
        self.batch = int(cell.parameter("batch_size"))
        self.places = workload.places(dict(cell.parameters))
        self.blocks: list[Block] = []
        # Indices of a token in each sequence and head, with 0 for its own place, last: (B, nkv, 3).
        indices = np.stack(np.meshgrid(range(self.batch), range(workload.model.kv_heads), 0, indexing="ij"), -1)
        self._slots = tf.constant(indices[:, :, 0], tf.int64)
        self._first: list = []

    def embedded(self, ids: tf.Tensor, place: tf.Tensor | None) -> tuple[tf.Tensor, tuple]:
        """Map tokens (B,) at a place (1,), or prompts (B, T) where it is None -> states (rows, H), heads' turns."""
        raise NotImplementedError

    def logits(self, x: tf.Tensor) -> tf.Tensor:
        """Map (B, H) -> (B, V)."""
        raise NotImplementedError

    def read(self, input_ids: tf.Tensor) -> dict[str, tf.Tensor]:
        """Map a prompt (B, T), int64, into the cache -> logits of the next token (B, V)."""
        batch, length = input_ids.shape
        x, turn = self.embedded(input_ids, None)
        for block in self.blocks:
            x = block.prefill(x, turn, batch, length)
        return {"logits": self.logits(tf.reshape(x, (batch, length, -1))[:, -1])}

    def proceed(self, tokens: tf.Tensor, place: tf.Tensor) -> dict[str, tf.Tensor]:
        """Map `tokens` (B,) and their place (1,), int64 -> logits of the next token (B, V), by the static cache."""
        slots = self._slots + place * tf.constant([0, 0, 1], tf.int64)
        future = tf.range(self.places, dtype=tf.int64) > place  # (C,)
        mask = tf.where(future, tf.constant(-math.inf, self.dtype), tf.constant(0, self.dtype))
        x, turn = self.embedded(tokens, place)
        for block in self.blocks:
            x = block.decode(x, turn, slots, mask)
        return {"logits": self.logits(x)}

    def __call__(self, *inputs: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return a call of the cell's pass, prefill or decode."""
        return self.proceed(*inputs) if self.cell.pass_name == "decode" else self.read(*inputs)

    def remember(self, weights: Arrays) -> None:
        """Put the decode pass's past into the cache."""
        for layer, block in enumerate(self.blocks):
            for cache, name in zip((block.keys, block.values), PAST, strict=True):
                past = tf.constant(weights[name][layer][None], cache.dtype)  # (1, nkv, C, hs)
                cache.assign(tf.tile(past, (self.batch, 1, 1, 1)))
                self._first.append((cache, past[:, :, -STEPS:]))  # what calls overwrite

    def restore(self) -> None:
        """Restore the cache's contents from before the first call; a prompt writes all of it again."""
        for cache, first in self._first:
            cache[:, :, -STEPS:].assign(tf.tile(first, (self.batch, 1, 1, 1)))

    def compared(self, last: tf.Tensor) -> dict[str, tf.Tensor]:
        """Return the compared places of the cache after a call with this last input: (layers, B, nkv, n, hs)."""
        if self.cell.pass_name == "decode":
            places = tf.concat((last - 1, last), 0)
        else:
            (places,) = self.workload.places_given(dict(self.cell.parameters))
        return {
            name: tf.stack([tf.gather(getattr(block, name), places, axis=2) for block in self.blocks])
            for name in ("keys", "values")
        }
