"""Layers that models share, written as PyTorch's exporter writes them."""

from __future__ import annotations

import math

import numpy as np

from frameworks.onnxruntime.writer import Writer
from workloads.spec import Arrays


def linear(graph: Writer, weights: Arrays, name: str, x: str) -> str:
    """Map (..., in) -> (..., out), with its bias where it has one: a product and a sum."""
    y = graph.op("MatMul", x, graph.weight(f"{name}.weight", weights[f"{name}.weight"].T))  # (..., out)
    bias = f"{name}.bias"
    return graph.op("Add", y, graph.weight(bias, weights[bias])) if bias in weights else y


def rows_linear(graph: Writer, weights: Arrays, name: str, x: str) -> str:
    """Map (N, in) -> (N, out): of two axes a product with its bias is one operator."""
    tensors = [graph.weight(f"{name}.{part}", weights[f"{name}.{part}"]) for part in ("weight", "bias")]
    return graph.op("Gemm", x, *tensors, transB=1)


def norm(graph: Writer, weights: Arrays, name: str, x: str, epsilon: float) -> str:
    """Normalise over the last axis."""
    parts = [f"{name}.{part}" for part in ("weight", "bias") if f"{name}.{part}" in weights]
    return graph.op("LayerNormalization", x, *(graph.weight(p, weights[p]) for p in parts), axis=-1, epsilon=epsilon)


def embedding(graph: Writer, weights: Arrays, name: str, ids: str) -> str:
    """Map (...) token ids -> (..., H)."""
    return graph.op("Gather", graph.weight(f"{name}.weight", weights[f"{name}.weight"]), ids)


def length(graph: Writer, ids: str) -> str:
    """Map `ids` (B, S) -> S, a number."""
    return graph.op("Squeeze", graph.op("Shape", ids, start=1, end=2))


def positions(graph: Writer, ids: str) -> str:
    """Map `ids` (B, S) -> 0, 1, ..., S - 1, (S,)."""
    return graph.op("Range", graph.constant(0), length(graph, ids), graph.constant(1))


def heads(graph: Writer, x: str, count: int, width: int) -> str:
    """Map (B, S, H) -> (B, nh, S, hs)."""
    split = graph.op("Reshape", x, graph.constant([0, 0, count, width]))  # (B, S, nh, hs); 0 keeps an axis
    return graph.op("Transpose", split, perm=[0, 2, 1, 3])


def scores(graph: Writer, q: str, k: str, width: int) -> str:
    """Map `q` and `k` (B, nh, S, hs) -> (B, nh, S, S)."""
    products = graph.op("MatMul", q, graph.op("Transpose", k, perm=[0, 1, 3, 2]))
    return graph.op("Mul", products, graph.constant(1 / math.sqrt(width), np.float32))


def attended(graph: Writer, scores: str, v: str, hidden: int) -> str:
    """Map `scores` (B, nh, S, S) and `v` (B, nh, S, hs) -> (B, S, H)."""
    context = graph.op("MatMul", graph.op("Softmax", scores, axis=-1), v)  # (B, nh, S, hs)
    return graph.op("Reshape", graph.op("Transpose", context, perm=[0, 2, 1, 3]), graph.constant([0, 0, hidden]))
