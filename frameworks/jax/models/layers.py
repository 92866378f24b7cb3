"""Layers as functions of their parameters, and the tree that holds a model's."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from measurement.cells import Cell
from workloads.spec import Arrays

# Parts of names under which matrices are looked up by row and not multiplied with.
TABLES = {"embeddings", "embedding", "wte", "wpe"}
# Key of values without a gradient, by name, in a model's parameters and in its outputs under training.
STATE = "state without gradients"


def recomputed(cell: Cell) -> Callable[[Callable], Callable]:
    """Return a decorator of a layer: with CHECKPOINT the backward pass computes its activations again."""

    def kept(primitive: Any, *_: Any, **__: Any) -> bool:
        return primitive.name == "dot_general" or "attention" in primitive.name

    policies = {"full": None, "selective": kept}
    checkpointing = cell.parameter("checkpoint", "none")
    return (lambda layer: layer) if checkpointing == "none" else partial(jax.checkpoint, policy=policies[checkpointing])


def linear(p: dict, x: jax.Array) -> jax.Array:
    return x @ p["weight"] + p["bias"]  # (..., in) -> (..., out)


def layer_norm(p: dict, x: jax.Array, epsilon: float) -> jax.Array:
    wide = x.astype(jnp.float32)  # statistics in fp32 whatever the dtype, as the other frameworks' operators do
    centred = wide - wide.mean(axis=-1, keepdims=True)
    y = centred * jax.lax.rsqrt(wide.var(axis=-1, keepdims=True) + epsilon)
    y = y.astype(x.dtype) * p["weight"]
    return y + p["bias"] if "bias" in p else y


def embedding(p: dict, ids: jax.Array) -> jax.Array:
    return jnp.take(p["weight"], ids, axis=0)


def tree(weights: Arrays, load: Callable[[np.ndarray], jax.Array]) -> dict:
    """Return weights nested by the parts of their names; linear kernels become (in, out), as JAX users keep them."""
    root: dict = {}
    for name, array in weights.items():
        *path, leaf = name.split(".")
        node = root
        for part in path:
            node = node.setdefault(part, {})
        node[leaf] = load(array.T if array.ndim == 2 and TABLES.isdisjoint(path) else array)
    return root
