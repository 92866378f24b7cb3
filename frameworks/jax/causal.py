"""Models with a cache as pure functions over parameters, whatever their blocks are made of.

The cache is a list with a layer's keys and values each, (B, nkv, C, hs); a call gives a new one, in the old one's
memory where that was donated. A kind of model is a module with `parameters`, `embedded`, `projected`, `fed_forward` and
`logits`; matrices are (out, in), as checkpoints have them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from types import ModuleType

import jax
import jax.numpy as jnp
import numpy as np

from workloads.causal import Causal
from workloads.decode import PAST
from workloads.spec import Arrays

Cache = list[tuple[jax.Array, jax.Array]]


def empty(model: Causal, batch: int, places: int, dtype: np.dtype) -> Cache:
    """A cache with nothing in it."""
    shape = (batch, model.kv_heads, places, model.head_size)
    return [(jnp.zeros(shape, dtype), jnp.zeros(shape, dtype)) for _ in range(model.layers)]


def past(model: Causal, batch: int, weights: Arrays, load: Callable[[np.ndarray], jax.Array]) -> Cache:
    """A cache with the same past for every sequence."""
    keys, values = (weights[name] for name in PAST)  # (layers, nkv, C, hs)
    return [
        tuple(jnp.tile(load(part[layer])[None], (batch, 1, 1, 1)) for part in (keys, values))
        for layer in range(model.layers)
    ]


def decode(
    kind: ModuleType, model: Causal, params: dict, cache: Cache, tokens: jax.Array, place: jax.Array
) -> tuple[Cache, dict]:
    """`tokens` (B,) and their place (1,), int32 -> the cache with them, and logits of the next token (B, V)."""
    at = place[0]
    slots = jnp.arange(cache[0][0].shape[2])  # (C,)
    x, turn = kind.embedded(params, tokens, at)  # (B, H)
    batch, updated = len(tokens), []
    for p, (keys, values) in zip(params["blocks"], cache, strict=True):
        q, k, v = kind.projected(model, p, x, turn)
        keys = jax.lax.dynamic_update_slice_in_dim(keys, k[:, :, None], at, axis=2)
        values = jax.lax.dynamic_update_slice_in_dim(values, v[:, :, None], at, axis=2)
        updated.append((keys, values))
        q = q.reshape(batch, model.kv_heads, -1, model.head_size) * model.head_size**-0.5
        scores = jnp.einsum("bkgd,bkcd->bkgc", q, keys)  # (B, nkv, nh / nkv, C)
        scores = jnp.where(slots <= at, scores.astype(jnp.float32), -jnp.inf)
        shares = jax.nn.softmax(scores).astype(values.dtype)
        context = jnp.einsum("bkgc,bkcd->bkgd", shares, values)  # (B, nkv, nh / nkv, hs)
        x = kind.fed_forward(p, x, context.reshape(batch, -1))
    return updated, {"logits": kind.logits(params, x)}


def explicit_attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """(B, T, nh, hs), (B, T, nkv, hs) twice -> (B, T, nh, hs); each token attends up to itself."""
    batch, length, heads, size = q.shape
    q = q.reshape(batch, length, k.shape[2], -1, size) / math.sqrt(size)
    scores = jnp.einsum("btkgd,bskd->bkgts", q, k).astype(jnp.float32)  # (B, nkv, nh / nkv, T, T)
    future = jnp.triu(jnp.ones((length, length), bool), 1)  # (T, T)
    shares = jax.nn.softmax(jnp.where(future, -jnp.inf, scores)).astype(v.dtype)
    return jnp.einsum("bkgts,bskd->btkgd", shares, v).reshape(batch, length, heads, size)


def prefill(
    kind: ModuleType, model: Causal, attend: Callable, params: dict, cache: Cache, input_ids: jax.Array
) -> tuple[Cache, dict]:
    """`input_ids` (B, T), int32 -> the cache filled from its beginning, and logits of the next token (B, V)."""
    batch, length = input_ids.shape
    x, turn = kind.embedded(params, input_ids, None)  # (B, T, H)
    updated = []
    for p, (keys, values) in zip(params["blocks"], cache, strict=True):
        q, k, v = kind.projected(model, p, x, turn)  # (B, T, n, hs)
        write = partial(jax.lax.dynamic_update_slice_in_dim, start_index=0, axis=2)
        updated.append((write(keys, k.swapaxes(1, 2)), write(values, v.swapaxes(1, 2))))
        x = kind.fed_forward(p, x, attend(q, k, v).reshape(batch, length, -1))
    return updated, {"logits": kind.logits(params, x[:, -1])}
