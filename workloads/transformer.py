"""Common parts of the transformer workloads: weights, attention, cost, and how rounding adds up."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from workloads.spec import Arrays, Cost, OperatorCost, Parameter

ATTENTION = Parameter(
    "attention", "attention", "fused", "attention of plain models: the framework's fused operator (default if there "
    "is one), or explicit",
    choices=("fused", "explicit"), implementations=("plain",),
)  # fmt: skip


def sequence_of(positions: int) -> Parameter:
    """Return the sequence-length parameter of a model with this many positions."""
    return Parameter("seq_len", "seq", min(128, positions), "tokens per sequence", maximum=positions)


# Relative root mean square of the errors of BERT's states after one layer.
ROUNDING_OF_A_LAYER = {"fp32": 1e-6, "tf32": 1e-3, "bf16": 1e-2, "fp16": 1.2e-3}


def tolerance(layers: int, of_bert: float = 1) -> dict[str, float]:
    """Return the error allowed by dtype, `of_bert` times that of BERT's layers.

    Rounding adds up over layers as a random walk: docs/methodology.md, "Parity", has the measurements.
    """
    return {name: of_bert * layer * math.sqrt(layers) for name, layer in ROUNDING_OF_A_LAYER.items()}


def linear_shapes(name: str, outputs: int, inputs: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a linear layer with a bias."""
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def norm_shapes(name: str, width: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a layer norm with a bias."""
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def normal_weights(shapes: dict[str, tuple[int, ...]], seed: int, norms: tuple[str, ...]) -> Arrays:
    """Return normal weights by name: mean 0, or 1 for names that end in one of `norms`, and standard deviation 0.02.

    With norms of ones and biases of zeros the parity check would miss one that is swapped or forgotten.
    """
    rng = np.random.default_rng(seed)
    weights = {}
    for name, shape in shapes.items():
        draw = rng.standard_normal(shape, dtype=np.float32) * np.float32(0.02)
        weights[name] = draw + 1 if name.endswith(norms) else draw
    return weights


def cost_of_layers(
    layers: int,
    matmuls: Sequence[tuple[int, int]],
    matmuls_once: Sequence[tuple[int, int]],
    attention: tuple[int, int],
    normalisation: OperatorCost,
    pointwise: OperatorCost,
    copied: int,
    compulsory_bytes: int,
) -> Cost:
    """Return the cost of a call: `layers` times `matmuls` and `attention`, plus all other operators once.

    Pairs are (FLOPs, bytes); `copied` and `compulsory_bytes` are bytes of the whole model.
    """
    flops, traffic = (layers * sum(m[i] for m in matmuls) + sum(m[i] for m in matmuls_once) for i in (0, 1))
    operators = (
        OperatorCost("matmul", flops, traffic),
        OperatorCost("attention", layers * attention[0], layers * attention[1]),
        normalisation,
        pointwise,
        OperatorCost("copy", 0, copied),
    )
    return Cost(operators, compulsory_bytes)
