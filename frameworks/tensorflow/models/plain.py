"""BERT and small models as `tf.Module`s, with the same operators as the other frameworks' plain models."""

from __future__ import annotations

import math

import tensorflow as tf

from frameworks.tensorflow.models import gpt, lstm, resnet, vit
from frameworks.tensorflow.models.layers import LayerNorm, Linear, Types, lengths
from frameworks.tensorflow.modes import generation
from workloads.bert import LAYER_NORM_EPSILON as BERT_EPSILON
from workloads.mlp import LAYER_NORM_EPSILON as MLP_EPSILON
from workloads.passes import WITH_CACHE
from workloads.spec import Arrays, Workload


class BertLayer(tf.Module):
    """Self-attention and feed-forward block of BERT."""

    def __init__(self, workload: Workload, weights: Arrays, prefix: str, types: Types):
        super().__init__()
        self.heads = workload.heads
        self.query, self.key, self.value = (
            Linear(weights, f"{prefix}.attention.self.{name}", types) for name in ("query", "key", "value")
        )
        self.attention_output = Linear(weights, f"{prefix}.attention.output.dense", types)
        self.attention_norm = LayerNorm(weights, f"{prefix}.attention.output.LayerNorm", BERT_EPSILON, types)
        self.intermediate = Linear(weights, f"{prefix}.intermediate.dense", types)
        self.output = Linear(weights, f"{prefix}.output.dense", types)
        self.norm = LayerNorm(weights, f"{prefix}.output.LayerNorm", BERT_EPSILON, types)

    def __call__(
        self, x: tf.Tensor, mask: tf.Tensor | None, batch: int | tf.Tensor, length: int | tf.Tensor
    ) -> tf.Tensor:
        hidden = x.shape[-1]

        def split(y: tf.Tensor) -> tf.Tensor:
            return tf.transpose(
                tf.reshape(y, (batch, length, self.heads, hidden // self.heads)), (0, 2, 1, 3)
            )  # (B, nh, S, hs)

        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        scores = tf.matmul(q, k, transpose_b=True) / math.sqrt(hidden // self.heads)  # (B, nh, S, S)
        if mask is not None:
            scores = scores + mask
        context = tf.matmul(tf.nn.softmax(scores), v)  # (B, nh, S, hs)
        context = tf.reshape(tf.transpose(context, (0, 2, 1, 3)), (-1, hidden))  # (B * S, H)
        x = self.attention_norm(x + self.attention_output(context))
        y = tf.nn.gelu(self.intermediate(x), approximate=False)  # (B * S, I)
        return self.norm(x + self.output(y))  # (B * S, H)


class Bert(tf.Module):
    """BERT with its pooler. States are 2-D, (B * S, H), between the layers, as in the original implementation:
    `tf.matmul` of a 3-D tensor and a kernel would be a batched product."""

    def __init__(self, workload: Workload, weights: Arrays, types: Types):
        super().__init__()
        self.types = types
        self.words, self.positions, self.token_types = (
            tf.Variable(weights[f"embeddings.{name}_embeddings.weight"], dtype=types.variables)
            for name in ("word", "position", "token_type")
        )
        self.norm = LayerNorm(weights, "embeddings.LayerNorm", BERT_EPSILON, types)
        self.layers = [
            BertLayer(workload, weights, f"encoder.layer.{layer}", types) for layer in range(workload.layers)
        ]
        self.pooler = Linear(weights, "pooler.dense", types)
        # For the training pass, which applies it.
        self.classifier = Linear(weights, "classifier", types) if "classifier.weight" in weights else None

    def __call__(self, input_ids: tf.Tensor, attention_mask: tf.Tensor | None = None) -> dict[str, tf.Tensor]:
        batch, length = lengths(input_ids)
        x = tf.gather(self.words, input_ids) + tf.gather(self.positions, tf.range(length))  # (B, S, H)
        x = x + tf.gather(self.token_types, tf.zeros_like(input_ids))
        hidden = x.shape[-1]
        x = self.types.cast(self.norm(tf.reshape(x, (-1, hidden))))  # (B * S, H)
        mask = None
        if attention_mask is not None:
            mask = tf.cast(tf.reshape(attention_mask, (batch, 1, 1, length)), self.types.compute)
            mask = (1.0 - mask) * -10000.0  # (B, 1, 1, S), added to the scores; float16 holds it
        for layer in self.layers:
            x = layer(x, mask, batch, length)
        x = tf.reshape(x, (batch, length, hidden))
        return {"last_hidden_state": x, "pooler_output": tf.tanh(self.pooler(x[:, 0]))}


class Mlp(tf.Module):
    """Blocks of `relu(layer_norm(linear(x)))`."""

    def __init__(self, workload: Workload, weights: Arrays, types: Types):
        super().__init__()
        self.types = types
        # A mapping of the workload's weights has four tensors a block.
        self.blocks = [
            (Linear(weights, f"layers.{i}.linear", types), LayerNorm(weights, f"layers.{i}.norm", MLP_EPSILON, types))
            for i in range(len(weights) // 4)
        ]

    def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        x = self.types.cast(x)
        for linear, norm in self.blocks:
            x = tf.nn.relu(norm(linear(x)))  # (B, W)
        return {"output": x}


class Matmul(tf.Module):
    """One matrix product."""

    def __init__(self, weights: Arrays, dtype: tf.DType):
        super().__init__()
        self.kernel = tf.Variable(weights["weight"].T, dtype=dtype)

    def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"output": tf.matmul(x, self.kernel)}  # (N, N)


class PointwiseChain(tf.Module):
    """`repeat` multiplications of a vector by a variable."""

    def __init__(self, weights: Arrays, repeat: int, dtype: tf.DType):
        super().__init__()
        self.repeat = repeat
        self.factor = tf.Variable(weights["factor"], dtype=dtype)

    def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        for _ in range(self.repeat):
            x = x * self.factor  # (N,)
        return {"output": x}


class FusedCos(tf.Module):
    """`repeat` cosines of a vector."""

    def __init__(self, repeat: int):
        super().__init__()
        self.repeat = repeat

    def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        for _ in range(self.repeat):
            x = tf.cos(x)  # (N,)
        return {"output": x}


class Stream(tf.Module):
    """A vector added to itself."""

    def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"output": x + x}  # (N,)


class OpOverhead(tf.Module):
    """`additions` tiny additions, each on the last one's result."""

    def __init__(self, weights: Arrays, additions: int, dtype: tf.DType):
        super().__init__()
        self.additions = additions
        self.up, self.down = (tf.Variable(weights[name], dtype=dtype) for name in ("up", "down"))

    def __call__(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        terms = (self.up.read_value(), self.down.read_value())  # once: reading a variable is a separate operator
        for index in range(self.additions):
            x = x + terms[index % 2]  # (N,)
        return {"output": x}


MODELS = {
    "bert": lambda workload, cell, weights, types: Bert(workload, weights, types),
    "gpt": lambda workload, cell, weights, types: (
        generation.build(workload, cell, weights, types)
        if cell.pass_name in WITH_CACHE
        else gpt.GptModel(workload, weights, types)
    ),
    "llama": generation.build,
    "resnet": lambda workload, cell, weights, types: resnet.ResNetModel(
        workload, weights, cell.parameter("layout"), cell.pass_name == "training", types
    ),
    "vit": lambda workload, cell, weights, types: vit.ViTModel(workload, weights, cell.parameter("layout"), types),
    "lstm": lstm.build,
    "mlp": lambda workload, cell, weights, types: Mlp(workload, weights, types),
    "matmul": lambda workload, cell, weights, types: Matmul(weights, types.variables),
    "pointwise-chain": lambda workload, cell, weights, types: PointwiseChain(
        weights, cell.parameter("repeat"), types.variables
    ),
    "fused-cos": lambda workload, cell, weights, types: FusedCos(cell.parameter("repeat")),
    "stream": lambda workload, cell, weights, types: Stream(),
    "op-overhead": lambda workload, cell, weights, types: OpOverhead(
        weights, cell.parameter("additions"), types.variables
    ),
}
