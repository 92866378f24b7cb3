"""GPT as `tf.Module`s, operator for operator as in the other frameworks' files of this name."""

from __future__ import annotations

import math
from collections.abc import Sequence

import tensorflow as tf

from frameworks.tensorflow.models.layers import LayerNorm, Linear, Types, lengths
from workloads.gpt import LAYER_NORM_EPSILON, Gpt
from workloads.spec import Arrays


class Block(tf.Module):
    """Self-attention and a two-layer perceptron, each behind a layer norm and added to the residual; ViT's as well.

    States are 2-D, (B * T, H): `tf.matmul` of a 3-D tensor and a kernel would be a batched product. `names` are those
    of the joined projection, of the one after attention, and of the perceptron's two.
    """

    def __init__(
        self, heads: int, weights: Arrays, prefix: str, names: Sequence[str], epsilon: float, types: Types, causal: bool
    ):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.ln_1, self.ln_2 = (LayerNorm(weights, f"{prefix}.{name}", epsilon, types) for name in ("ln_1", "ln_2"))
        self.attention, self.projection, self.expand, self.contract = (
            Linear(weights, f"{prefix}.{name}", types) for name in names
        )

    def __call__(self, x: tf.Tensor, batch: int | tf.Tensor, length: int | tf.Tensor) -> tf.Tensor:
        hidden = x.shape[-1]
        qkv = self.attention(self.ln_1(x))  # (B * T, 3H)
        qkv = tf.reshape(qkv, (batch, length, 3, self.heads, hidden // self.heads))
        q, k, v = tf.unstack(tf.transpose(qkv, (2, 0, 3, 1, 4)), num=3)  # (B, nh, T, hs) each
        scores = tf.matmul(q, k, transpose_b=True) * (1 / math.sqrt(hidden // self.heads))  # (B, nh, T, T)
        if self.causal:
            attended = tf.linalg.band_part(tf.ones((length, length), tf.bool), -1, 0)  # (T, T)
            scores = tf.where(attended, scores, tf.constant(-math.inf, scores.dtype))
        context = tf.matmul(tf.nn.softmax(scores), v)  # (B, nh, T, hs)
        context = tf.reshape(tf.transpose(context, (0, 2, 1, 3)), (-1, hidden))  # (B * T, H)
        x = x + self.projection(context)
        return x + self.contract(tf.nn.gelu(self.expand(self.ln_2(x)), approximate=False))  # (B * T, H)


class GptModel(tf.Module):
    """A GPT with tied embeddings: its output layer's weights are the token embeddings."""

    def __init__(self, workload: Gpt, weights: Arrays, types: Types):
        super().__init__()
        self.types = types
        self.words, self.positions = (
            tf.Variable(weights[f"{name}.weight"], dtype=types.variables) for name in ("wte", "wpe")
        )
        names = ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
        self.blocks = [
            Block(workload.heads, weights, f"h.{layer}", names, LAYER_NORM_EPSILON, types, causal=True)
            for layer in range(workload.layers)
        ]
        self.norm = LayerNorm(weights, "ln_f", LAYER_NORM_EPSILON, types)

    def logits(self, input_ids: tf.Tensor, last: bool) -> tf.Tensor:
        """Map `input_ids` (B, T), int64 -> logits (B * T, V), or (B, V) of the last position."""
        batch, length = lengths(input_ids)
        x = tf.gather(self.words, input_ids) + tf.gather(self.positions, tf.range(length))  # (B, T, H)
        hidden = x.shape[-1]
        x = self.types.cast(tf.reshape(x, (-1, hidden)))  # (B * T, H)
        for block in self.blocks:
            x = block(x, batch, length)
        x = self.norm(x)
        if last:
            x = tf.reshape(x, (batch, length, hidden))[:, -1]  # (B, H)
        return tf.matmul(x, self.types.cast(self.words), transpose_b=True)

    def __call__(self, input_ids: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"logits": self.logits(input_ids, last=True)}  # (B, V)
