"""BERT encoders (Devlin et al. 2018) with the pooler, as `BertModel` computes them without dropout."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from workloads.reference import attention, cross_entropy, gelu, layer_norm, linear
from workloads.spec import (
    BYTES_PER_VALUE,
    Arrays,
    Cost,
    OperatorCost,
    Parameter,
    Parameters,
    Weights,
    linear_cost,
)
from workloads.training import Classifier
from workloads.transformer import (
    ATTENTION,
    cost_of_layers,
    linear_shapes,
    norm_shapes,
    normal_weights,
    tolerance,
)

LAYER_NORM_EPSILON = 1e-12
POSITIONS = 512
MASKS = ("none", "full", "padded")
# With `mask=padded` lengths are spread evenly from a fifth of the padded length to all of it. The mean, 0.6, is that of
# comparisons of variable-length transformers (Zhai et al. 2023, ByteTransformer, IPDPS; its README).
SHORTEST = 0.2
CLASSES = 2
# Outputs, in this order, of every implementation.
OUTPUTS = ("last_hidden_state", "pooler_output")

_PARAMETERS = (
    Parameter("batch_size", "batch", 1, "sequences per call"),
    Parameter("seq_len", "seq", 128, "tokens per sequence", maximum=POSITIONS),
    Parameter(
        "mask", "mask", "none", "attention mask: none passed, ones (full), or sequences of different lengths (padded)",
        choices=MASKS,
    ),
    ATTENTION,
)  # fmt: skip


@dataclass(frozen=True)
class Bert(Classifier):
    """A BERT encoder of a given size."""

    same_values: ClassVar = ("attention",)
    classes: ClassVar[int] = CLASSES  # type: ignore[misc]  # of training

    layers: int = 12
    hidden: int = 768
    heads: int = 12
    intermediate: int = 3072
    vocabulary: int = 30522
    token_types: int = 2
    positions: int = POSITIONS

    def library_config(self) -> dict[str, int | float]:
        """Return the sizes under the names that transformers and PaddleNLP give them in their `BertConfig`."""
        return {
            "vocab_size": self.vocabulary,
            "hidden_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "intermediate_size": self.intermediate,
            "max_position_embeddings": self.positions,
            "type_vocab_size": self.token_types,
            "layer_norm_eps": LAYER_NORM_EPSILON,
        }

    def weight_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        h, i = self.hidden, self.intermediate
        shapes = {
            "embeddings.word_embeddings.weight": (self.vocabulary, h),
            "embeddings.position_embeddings.weight": (self.positions, h),
            "embeddings.token_type_embeddings.weight": (self.token_types, h),
            **norm_shapes("embeddings.LayerNorm", h),
        }
        for layer in range(self.layers):
            prefix = f"encoder.layer.{layer}"
            for name in ("query", "key", "value"):
                shapes |= linear_shapes(f"{prefix}.attention.self.{name}", h, h)
            shapes |= linear_shapes(f"{prefix}.attention.output.dense", h, h)
            shapes |= norm_shapes(f"{prefix}.attention.output.LayerNorm", h)
            shapes |= linear_shapes(f"{prefix}.intermediate.dense", i, h)
            shapes |= linear_shapes(f"{prefix}.output.dense", h, i)
            shapes |= norm_shapes(f"{prefix}.output.LayerNorm", h)
        return shapes | linear_shapes("pooler.dense", h, h)

    def seeded_weights(self, parameters: Parameters, seed: int) -> Arrays:
        """Draw normal weights of deviation 0.02, like BERT's initialisation; norms and biases too."""
        return normal_weights(self.weight_shapes(parameters), seed, ("LayerNorm.weight",))

    def inputs(self, parameters: Parameters, seed: int) -> Arrays:
        shape = (int(parameters["batch_size"]), int(parameters["seq_len"]))
        rng = np.random.default_rng(seed)
        # From 1 upward: PaddleNLP's model masks token 0 (padding) by itself when no mask is given.
        ids = rng.integers(1, self.vocabulary, shape, dtype=np.int64)
        if parameters["mask"] == "none":
            return {"input_ids": ids}
        if parameters["mask"] == "full":
            return {"input_ids": ids, "attention_mask": np.ones(shape, dtype=np.int64)}
        lengths = rng.permutation(padded_lengths(*shape))
        mask = (np.arange(shape[1]) < lengths[:, None]).astype(np.int64)  # (B, S)
        return {"input_ids": ids * mask, "attention_mask": mask}  # token 0 is padding

    def reference(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> Arrays:
        ids = inputs["input_ids"]  # (B, S)
        x = weights["embeddings.word_embeddings.weight"][ids]  # (B, S, H)
        x = x + weights["embeddings.position_embeddings.weight"][: ids.shape[1]]
        x = x + weights["embeddings.token_type_embeddings.weight"][0]
        x = _named_norm(x, weights, "embeddings.LayerNorm")

        mask = inputs.get("attention_mask")
        blocked = None if mask is None else np.where(mask[:, None, None, :] > 0, 0.0, -np.inf)  # (B, 1, 1, S)

        for layer in range(self.layers):
            prefix = f"encoder.layer.{layer}"
            q, k, v = (linear(x, weights, f"{prefix}.attention.self.{n}") for n in ("query", "key", "value"))
            context = attention(q, k, v, self.heads, blocked)  # (B, S, H)
            context = linear(context, weights, f"{prefix}.attention.output.dense")
            x = _named_norm(x + context, weights, f"{prefix}.attention.output.LayerNorm")
            y = gelu(linear(x, weights, f"{prefix}.intermediate.dense"))  # (B, S, I)
            y = linear(y, weights, f"{prefix}.output.dense")
            x = _named_norm(x + y, weights, f"{prefix}.output.LayerNorm")
        return {"last_hidden_state": x, "pooler_output": np.tanh(linear(x[:, 0], weights, "pooler.dense"))}

    def cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        """Count FLOPs as Ivanov et al. 2021, "Data Movement Is All You Need": operators by class, forward pass only."""
        batch, length, w = int(parameters["batch_size"]), int(parameters["seq_len"]), BYTES_PER_VALUE[dtype]
        rows, h, i = batch * length, self.hidden, self.intermediate
        states, scores = rows * h, batch * self.heads * length * length
        matmuls = [linear_cost(rows, h, h, w)] * 4 + [linear_cost(rows, h, i, w), linear_cost(rows, i, h, w)]
        # Two batched products, q k^T and p v, over each head's width.
        written = 0 if fused_attention else scores  # values of scores that reach memory
        attention = (2 * 2 * rows * length * h, 2 * w * (2 * states + written))
        norms = 2 * self.layers + 1
        # Layer norm: mean, centre, square, variance, scale, weight, bias = 7 a value. Softmax: max, subtract,
        # exponential, sum, divide = 5. GELU: scale, erf, add, two multiplications = 5. Six biases, two residuals.
        pointwise_flops = 5 * rows * i + rows * i + 5 * states + 2 * states + scores
        pointwise_bytes = 2 * w * (rows * i + written) + 2 * 3 * w * states  # products add their bias themselves
        transposes = 0 if fused_attention else 4 * 2 * w * states * self.layers  # of heads
        copies = transposes + 3 * w * states + 8 * rows  # embedding gathers
        weights = sum(math.prod(shape) for shape in self.weight_shapes(parameters).values())
        unused_rows = max(self.vocabulary - rows, 0) + self.positions - length + self.token_types - 1
        return cost_of_layers(
            self.layers,
            matmuls,
            [linear_cost(batch, h, h, w)],  # the pooler
            attention,
            OperatorCost(
                "normalisation",
                norms * 7 * states + self.layers * 5 * scores,
                2 * w * (norms * states + self.layers * written),
                transcendentals=self.layers * scores,
            ),
            OperatorCost(
                "pointwise",
                self.layers * pointwise_flops,
                self.layers * pointwise_bytes,
                transcendentals=self.layers * rows * i + batch * h,
            ),
            copies,
            w * (weights - unused_rows * h + states + batch * h) + 8 * rows,
        )

    def head_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        return linear_shapes("classifier", CLASSES, self.hidden)

    def loss(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> np.ndarray:
        """Return the mean cross-entropy of the sequences' classes, as fine-tuning a classifier minimises it."""
        pooled = self.reference(parameters, weights, inputs)["pooler_output"]  # (B, H)
        return cross_entropy(linear(pooled, weights, "classifier"), inputs["labels"])

    def training_forward_cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        values = int(parameters["batch_size"]) * CLASSES  # the classifier's product is as small as that
        return self.cost(parameters, dtype, fused_attention).with_loss(values, BYTES_PER_VALUE[dtype])

    def real_tokens_per_call(self, parameters: Parameters) -> int:
        batch, length = int(parameters["batch_size"]), int(parameters["seq_len"])
        return sum(padded_lengths(batch, length)) if parameters["mask"] == "padded" else batch * length

    def real_flops(self, parameters: Parameters, fused_attention: bool = False) -> int:
        """Return the FLOPs of all sequences at their own lengths, as for a program that skips padding."""
        if parameters["mask"] != "padded":
            return super().real_flops(parameters, fused_attention)
        lengths = padded_lengths(int(parameters["batch_size"]), int(parameters["seq_len"]))
        return sum(
            self.cost({**parameters, "batch_size": 1, "seq_len": n}, "fp32", fused_attention).flops for n in lengths
        )

    def canonical_name(self, checkpoint_name: str) -> str:
        """Return the name without `bert.`; the oldest checkpoints' gamma and beta become weight and bias."""
        name = checkpoint_name.removeprefix("bert.")
        return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def padded_lengths(batch: int, length: int) -> list[int]:
    """Return the lengths of a batch's sequences, padded to `length`: the quantiles of the even spread, shortest first.

    Quantiles, unlike draws, give batches of any size about the same share of padding; the seed decides only the order.
    So every input set of a cell has the same number of tokens.
    """
    places = [SHORTEST + (1 - SHORTEST) * (index + 0.5) / batch for index in range(batch)]
    return [max(1, round(place * length)) for place in places]


def _named_norm(x: np.ndarray, weights: Weights, name: str) -> np.ndarray:
    return layer_norm(x, weights[f"{name}.weight"], weights[f"{name}.bias"], LAYER_NORM_EPSILON)


_bert = partial(
    Bert,
    family="bert",
    implementations=("library", "plain"),
    parameters=_PARAMETERS,
    passes=("inference", "training"),
    padding="attention_mask",
)

WORKLOADS = {
    # The bert-base-uncased configuration, 110M parameters.
    "bert-base": _bert(name="bert-base", tolerance=tolerance(12)),
    # 24 and 48 of its blocks: does compile time grow with their number?
    "bert-24": _bert(name="bert-24", layers=24, tolerance=tolerance(24)),
    "bert-48": _bert(name="bert-48", layers=48, tolerance=tolerance(48)),
    # google/bert_uncased_L-2_H-128_A-2
    "bert-tiny": _bert(name="bert-tiny", layers=2, hidden=128, heads=2, intermediate=512, tolerance=tolerance(2)),
}
