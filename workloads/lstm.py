"""LSTMs (Hochreiter and Schmidhuber 1997) that classify sequences: an embedding, two layers, a classifier; no dropout.

Gates and names of tensors are torch's: input, forget, cell, output; two biases a layer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from workloads.reference import linear, sigmoid
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

LAYERS = 2
CELLS = ("fused", "scan", "unrolled")
# Outputs, in this order, of every implementation.
OUTPUTS = ("state", "logits")

_PARAMETERS = (
    Parameter("batch_size", "batch", 1, "sequences per call"),
    Parameter("seq_len", "seq", 128, "tokens per sequence", maximum=4096),
    Parameter(
        "cell", "cell", "fused", "recurrence: one operator for the whole sequence (fused; default if there is one), "
        "a loop (scan), or basic operators per position (unrolled)",
        choices=CELLS,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Lstm(Classifier):
    """Two LSTM layers, and a classifier of the second layer's last state."""

    same_values: ClassVar = ("cell",)

    vocabulary: int = 10_000
    hidden: int = 512  # of the embedding as well
    classes: int = 16

    def weight_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        h = self.hidden
        shapes: dict[str, tuple[int, ...]] = {"embedding.weight": (self.vocabulary, h)}
        for layer in range(LAYERS):
            shapes |= {f"lstm.weight_ih_l{layer}": (4 * h, h), f"lstm.weight_hh_l{layer}": (4 * h, h)}
            shapes |= {f"lstm.bias_ih_l{layer}": (4 * h,), f"lstm.bias_hh_l{layer}": (4 * h,)}
        return shapes | {"classifier.weight": (self.classes, h), "classifier.bias": (self.classes,)}

    def seeded_weights(self, parameters: Parameters, seed: int) -> Arrays:
        """Draw uniform weights within 1 / sqrt(hidden), as torch initialises an LSTM; embeddings normal."""
        rng = np.random.default_rng(seed)
        bound = np.float32(1 / math.sqrt(self.hidden))
        weights = {}
        for name, shape in self.weight_shapes(parameters).items():
            if name == "embedding.weight":
                weights[name] = rng.standard_normal(shape, dtype=np.float32)
            else:
                weights[name] = (2 * rng.random(shape, dtype=np.float32) - 1) * bound
        return weights

    def inputs(self, parameters: Parameters, seed: int) -> Arrays:
        shape = (int(parameters["batch_size"]), int(parameters["seq_len"]))
        return {"input_ids": np.random.default_rng(seed).integers(0, self.vocabulary, shape, dtype=np.int64)}

    def reference(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> Arrays:
        ids, h = inputs["input_ids"], self.hidden  # (B, S)
        embedded = weights["embedding.weight"][ids]  # (B, S, H)
        sequence = [embedded[:, place] for place in range(ids.shape[1])]  # of (B, H)
        for layer in range(LAYERS):
            kernels = [weights[f"lstm.weight_{source}_l{layer}"].T for source in ("ih", "hh")]
            bias = weights[f"lstm.bias_ih_l{layer}"] + weights[f"lstm.bias_hh_l{layer}"]
            state = memory = np.zeros((len(ids), h), np.float32)  # (B, H)
            for place, x in enumerate(sequence):
                gates = x @ kernels[0] + state @ kernels[1] + bias  # (B, 4H)
                taken, kept, new, shown = (gates[:, i * h : (i + 1) * h] for i in range(4))
                memory = sigmoid(kept) * memory + sigmoid(taken) * np.tanh(new)
                state = sigmoid(shown) * np.tanh(memory)
                sequence[place] = state
        return {"state": sequence[-1], "logits": linear(sequence[-1], weights, "classifier")}

    def cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        """Count products of all inputs at once, those of states one by one: each reads its matrix again."""
        batch, length, w = int(parameters["batch_size"]), int(parameters["seq_len"]), BYTES_PER_VALUE[dtype]
        rows, h = batch * length, self.hidden
        inputs, step = linear_cost(rows, h, 4 * h, w), linear_cost(batch, h, 4 * h, w)
        head = linear_cost(batch, h, self.classes, w)
        states = LAYERS * rows * h
        # A state's four gates: two sums of products and biases each, three sigmoids of four operations, two tangents,
        # three products and a sum. They read the gates' two products and the memory and write memory and state.
        weights = sum(math.prod(shape) for shape in self.weight_shapes(parameters).values())
        unused_rows = max(self.vocabulary - rows, 0)
        return Cost(
            operators=(
                OperatorCost(
                    "matmul",
                    LAYERS * (inputs[0] + length * step[0]) + head[0],
                    LAYERS * (inputs[1] + length * step[1]) + head[1],
                ),
                OperatorCost("pointwise", (8 + 12 + 2 + 4) * states, 11 * w * states, transcendentals=5 * states),
                OperatorCost("copy", 0, 2 * w * rows * h + 8 * rows),  # embedding gathers
            ),
            compulsory_bytes=w * (weights - unused_rows * h + batch * h + batch * self.classes) + 8 * rows,
            repeated_bytes=w * LAYERS * (length - 1) * h * 4 * h,
        )

    def training_forward_cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        forward, values = self.cost(parameters, dtype), int(parameters["batch_size"]) * self.classes
        loss = OperatorCost("pointwise", 4 * values, BYTES_PER_VALUE[dtype] * values, transcendentals=values)
        return forward.plus(loss)


_lstm = partial(
    Lstm,
    family="lstm",
    implementations=("plain",),
    parameters=_PARAMETERS,
    passes=("inference", "training"),
    tolerance={"fp32": 5e-6, "tf32": 2e-3, "bf16": 2e-2, "fp16": 4e-3},
)

WORKLOADS = {
    "lstm": _lstm(name="lstm"),  # 9.3M weights
    "lstm-tiny": _lstm(name="lstm-tiny", vocabulary=50, hidden=16, classes=5),
}
