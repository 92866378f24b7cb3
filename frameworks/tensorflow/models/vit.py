"""Vision transformers as `tf.Module`s, operator for operator as in the other frameworks' files of this name."""

from __future__ import annotations

import tensorflow as tf

from frameworks.tensorflow.models.gpt import Block
from frameworks.tensorflow.models.layers import Convolution, LayerNorm, Linear, Types, lengths
from workloads.spec import Arrays
from workloads.vit import LAYER_NORM_EPSILON, ViT


class ViTModel(tf.Module):
    """A vision transformer that classifies by its class token."""

    def __init__(self, workload: ViT, weights: Arrays, layout: str, types: Types):
        super().__init__()
        self.layout, self.types = layout, types
        self.patches = Convolution(weights, "conv_proj", workload.patch, 0, layout, types)
        self.token, self.positions = (
            tf.Variable(weights[name], dtype=types.variables) for name in ("class_token", "encoder.pos_embedding")
        )
        names = ("self_attention.in_proj", "self_attention.out_proj", "mlp.0", "mlp.3")
        weights = {name.replace("in_proj_", "in_proj."): tensor for name, tensor in weights.items()}
        prefixes = [f"encoder.layers.encoder_layer_{layer}" for layer in range(workload.layers)]
        self.blocks = [
            Block(workload.heads, weights, prefix, names, LAYER_NORM_EPSILON, types, causal=False)
            for prefix in prefixes
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
