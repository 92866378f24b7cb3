"""GPT with a cache as pure functions over parameters, operator for operator as in the other frameworks' files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from frameworks.jax.models import matrices
from frameworks.jax.models.layers import layer_norm
from workloads.cached_gpt import CachedGpt
from workloads.gpt import LAYER_NORM_EPSILON
from workloads.matrices import MATMUL
from workloads.spec import Arrays

product = partial(matrices.product, form=MATMUL)


def parameters(model: CachedGpt, weights: Arrays, load: Callable[[np.ndarray], jax.Array], places: int) -> dict:
    """Return the model's parameters."""
    names = {"ln_1": "ln_1", "qkv": "attn.c_attn", "output": "attn.c_proj"}
    names |= {"ln_2": "ln_2", "expand": "mlp.c_fc", "contract": "mlp.c_proj"}
    tables = {"words": "wte", "positions": "wpe", "last_norm": "ln_f"}
    return {key: load(weights[f"{name}.weight"]) for key, name in tables.items()} | {
        "blocks": [
            {key: load(weights[f"h.{layer}.{name}.weight"]) for key, name in names.items()}
            for layer in range(model.layers)
        ]
    }


def norm(x: jax.Array, weight: jax.Array) -> jax.Array:
    return layer_norm({"weight": weight}, x, LAYER_NORM_EPSILON)


def embedded(params: dict, ids: jax.Array, at: jax.Array | None) -> tuple[jax.Array, None]:
    """Return states (..., H) without a rotation: each position has its own embedding."""
    table = params["positions"]
    places = table[: ids.shape[1]] if at is None else jax.lax.dynamic_slice_in_dim(table, at, 1)  # (T or 1, H)
    return jnp.take(params["words"], ids, axis=0) + places, None


def projected(model: CachedGpt, p: dict, x: jax.Array, _: None) -> tuple:
    """Map (..., H) -> queries, keys and values (..., nh, hs)."""
    qkv = product(norm(x, p["ln_1"]), p["qkv"]).reshape(*x.shape[:-1], -1, model.head_size)
    return tuple(jnp.split(qkv, 3, axis=-2))


def fed_forward(_: CachedGpt, p: dict, x: jax.Array, context: jax.Array) -> jax.Array:
    x = x + product(context, p["output"])  # (..., H)
    return x + product(jax.nn.gelu(product(norm(x, p["ln_2"]), p["expand"]), approximate=False), p["contract"])


def logits(_: CachedGpt, params: dict, x: jax.Array) -> jax.Array:
    """Map (B, H) -> (B, V)."""
    return product(norm(x, params["last_norm"]), params["words"])
