"""Vision transformers as `tf.Module`s, operator for operator as in the other frameworks' files of this name."""

from __future__ import annotations

import math

import tensorflow as tf

from frameworks.tensorflow.models.layers import Convolution, LayerNorm, Linear, Types, lengths
from workloads.spec import Arrays
from workloads.vit import LAYER_NORM_EPSILON, ViT


class Block(tf.Module):
    """Self-attention and a two-layer perceptron, each behind a layer norm and added to the residual.

    States are 2-D, (B * S, H): `tf.matmul` of a 3-D tensor and a kernel would be a batched product.
    """

    def __init__(self, workload: ViT, weights: Arrays, prefix: str, types: Types):
        super().__init__()
        attention = f"{prefix}.self_attention"
        in_projection = {
            "in.weight": weights[f"{attention}.in_proj_weight"],
            "in.bias": weights[f"{attention}.in_proj_bias"],
        }
        self.heads = workload.heads
        self.ln_1 = LayerNorm(weights, f"{prefix}.ln_1", LAYER_NORM_EPSILON, types)
        self.attention = Linear(in_projection, "in", types)
        self.projection = Linear(weights, f"{attention}.out_proj", types)
        self.ln_2 = LayerNorm(weights, f"{prefix}.ln_2", LAYER_NORM_EPSILON, types)
        self.expand = Linear(weights, f"{prefix}.mlp.0", types)
        self.contract = Linear(weights, f"{prefix}.mlp.3", types)

    def __call__(self, x: tf.Tensor, batch: int | tf.Tensor, length: int | tf.Tensor) -> tf.Tensor:
        hidden = x.shape[-1]
        qkv = self.attention(self.ln_1(x))  # (B * S, 3H)
        qkv = tf.reshape(qkv, (batch, length, 3, self.heads, hidden // self.heads))
        q, k, v = tf.unstack(tf.transpose(qkv, (2, 0, 3, 1, 4)), num=3)  # (B, nh, S, hs) each
        scores = tf.matmul(q, k, transpose_b=True) * (1 / math.sqrt(hidden // self.heads))  # (B, nh, S, S)
        context = tf.matmul(tf.nn.softmax(scores), v)  # (B, nh, S, hs)
        context = tf.reshape(tf.transpose(context, (0, 2, 1, 3)), (-1, hidden))  # (B * S, H)
        x = x + self.projection(context)
        return x + self.contract(tf.nn.gelu(self.expand(self.ln_2(x)), approximate=False))  # (B * S, H)


class ViTModel(tf.Module):
    """A vision transformer that classifies by its class token."""

    def __init__(self, workload: ViT, weights: Arrays, layout: str, types: Types):
        super().__init__()
        self.layout, self.types = layout, types
        self.patches = Convolution(weights, "conv_proj", workload.patch, 0, layout, types)
        self.token, self.positions = (
            tf.Variable(weights[name], dtype=types.variables) for name in ("class_token", "encoder.pos_embedding")
        )
        self.blocks = [
            Block(workload, weights, f"encoder.layers.encoder_layer_{layer}", types) for layer in range(workload.layers)
        ]
        self.norm = LayerNorm(weights, "encoder.ln", LAYER_NORM_EPSILON, types)
        self.head = Linear(weights, "heads.head", types)

    def __call__(self, images: tf.Tensor) -> dict[str, tf.Tensor]:
        x = self.patches(self.types.cast(images))
        batch = lengths(images)[0]
        hidden = self.token.shape[-1]
        if self.layout == "nchw":
            x = tf.transpose(tf.reshape(x, (batch, hidden, -1)), (0, 2, 1))  # (B, patches, H)
        else:
            x = tf.reshape(x, (batch, -1, hidden))  # (B, patches, H)
        token = tf.broadcast_to(self.types.cast(self.token), (batch, 1, hidden))
        x = tf.concat([token, x], axis=1) + self.types.cast(self.positions)  # (B, S, H)
        length = lengths(x)[1]
        x = tf.reshape(x, (-1, hidden))  # (B * S, H)
        for block in self.blocks:
            x = block(x, batch, length)
        x = tf.reshape(self.norm(x), (batch, length, hidden))
        return {"logits": self.head(x[:, 0])}  # (B, classes)
