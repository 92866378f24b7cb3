"""GPT as `tf.Module`s with a static cache, operator for operator as in the other frameworks' files of this name."""

from __future__ import annotations

import tensorflow as tf

from frameworks.tensorflow.models import causal
from frameworks.tensorflow.models.layers import LayerNorm, Linear, Types
from measurement.cells import Cell
from workloads.cached_gpt import CachedGpt
from workloads.gpt import LAYER_NORM_EPSILON
from workloads.spec import Arrays, Workload


class Block(causal.Block):
    """Attention and a two-layer perceptron, each behind a layer norm and added to the residual."""

    def __init__(self, model: CachedGpt, weights: Arrays, prefix: str, batch: int, places: int, types: Types):
        super().__init__(model, batch, places, types.variables)
        self.ln_1 = LayerNorm(weights, f"{prefix}.ln_1", LAYER_NORM_EPSILON, types)
        self.qkv = Linear(weights, f"{prefix}.attn.c_attn", types)
        self.output = Linear(weights, f"{prefix}.attn.c_proj", types)
        self.ln_2 = LayerNorm(weights, f"{prefix}.ln_2", LAYER_NORM_EPSILON, types)
        self.expand = Linear(weights, f"{prefix}.mlp.c_fc", types)
        self.contract = Linear(weights, f"{prefix}.mlp.c_proj", types)

    def projected(self, x: tf.Tensor, turn: tuple, _form: str) -> list[tf.Tensor]:
        qkv = tf.reshape(self.qkv(self.ln_1(x)), (x.shape[0], -1, self.head_size))  # (rows, 3 nh, hs)
        return tf.split(qkv, 3, axis=1)

    def fed_forward(self, x: tf.Tensor, context: tf.Tensor, _form: str) -> tf.Tensor:
        x = x + self.output(context)  # (rows, H)
        return x + self.contract(tf.nn.gelu(self.expand(self.ln_2(x)), approximate=False))


class GptModel(causal.CausalModel):
    """A GPT with tied embeddings, and its cache."""

    def __init__(self, workload: Workload, cell: Cell, weights: Arrays, types: Types):
        super().__init__(workload, cell, weights, types)
        self.words, self.positions = (
            tf.Variable(weights[f"{name}.weight"], dtype=types.variables, trainable=False) for name in ("wte", "wpe")
        )
        self.blocks = [
            Block(workload.model, weights, f"h.{layer}", self.batch, self.places, types)
            for layer in range(workload.model.layers)
        ]
        self.norm = LayerNorm(weights, "ln_f", LAYER_NORM_EPSILON, types)

    def embedded(self, ids: tf.Tensor, place: tf.Tensor | None) -> tuple[tf.Tensor, tuple]:
        """Return states (..., H) without a rotation: each position has its own embedding."""
        places = tf.range(ids.shape[1]) if place is None else place  # (T,) or (1,)
        x = tf.gather(self.words, ids) + tf.gather(self.positions, places)  # (..., H)
        return tf.reshape(x, (-1, x.shape[-1])), ()

    def logits(self, x: tf.Tensor) -> tf.Tensor:
        return tf.matmul(self.norm(x), self.words, transpose_b=True)
