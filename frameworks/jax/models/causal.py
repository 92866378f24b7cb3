"""Models with a cache as pure functions over parameters, for any kind of block.

The cache is a list of each layer's keys and values, (B, nkv, C, hs); a call returns a new one, in the old one's memory
where that is donated. Where `stacked` merges it into one pair, and the blocks' parameters into one tree, a call is a
`jax.lax.scan` over the layers. A kind of model is a module with `parameters`, `embedded`, `projected`, `fed_forward`
and `logits`; matrices are (out, in), as in checkpoints.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from frameworks.adapter import Unsupported
from frameworks.jax.models.layers import STATE
from workloads.causal import Causal
from workloads.decode import PAST
from workloads.spec import Arrays

Pair = tuple[jax.Array, jax.Array]  # keys and values
Cache = list[Pair] | Pair  # a layer's each, or stacked


def empty(model: Causal, batch: int, places: int, dtype: np.dtype) -> list[Pair]:
    """Return an empty cache."""
    shape = (batch, model.kv_heads, places, model.head_size)
    return [(jnp.zeros(shape, dtype), jnp.zeros(shape, dtype)) for _ in range(model.layers)]


def past(model: Causal, batch: int, weights: Arrays, load: Callable[[np.ndarray], jax.Array]) -> list[Pair]:
    """Return a cache with the same past for every sequence."""
    keys, values = (weights[name] for name in PAST)  # (layers, nkv, C, hs)
    return [
        tuple(jnp.tile(load(part[layer])[None], (batch, 1, 1, 1)) for part in (keys, values))
        for layer in range(model.layers)
    ]


def stacked(layers: list) -> Any:
    """Return the layers' trees as one: (...) in each becomes (layers, ...). `layers` is left empty, to free them.

    Raises Unsupported where the layers are not alike.
    """
    parts, kinds = zip(*map(jax.tree.flatten, layers), strict=True)
    if len({(kind, *((x.shape, x.dtype) for x in part)) for kind, part in zip(kinds, parts, strict=True)}) > 1:
        raise Unsupported("jax.lax.scan needs identical layers, and this model's differ: measure MODE=jit.")
    layers.clear()
    return jax.tree.unflatten(kinds[0], [jnp.stack([part.pop(0) for part in parts]) for _ in range(len(parts[0]))])


def through(layer: Callable, x: jax.Array, blocks: Any, cache: Cache) -> tuple[jax.Array, Cache]:
    """Return states after every block, and the new cache; `layer` takes states, and a block's parameters and cache."""
    if isinstance(blocks, dict):
        return jax.lax.scan(layer, x, (blocks, cache))
    updated = []
    for held in zip(blocks, cache, strict=True):
        x, written = layer(x, held)
        updated.append(written)
    return x, updated


def decode(
    kind: ModuleType, model: Causal, params: dict, cache: Cache, tokens: jax.Array, place: jax.Array
) -> tuple[Cache, dict]:
    """Map `tokens` (B,) and their place (1,), int32 -> the cache with them, and logits of the next token (B, V)."""
    at = place[0]
    slots = jnp.arange(jax.tree.leaves(cache)[0].shape[-2])  # (C,)
    x, turn = kind.embedded(params, tokens, at)  # (B, H)
    batch = len(tokens)

    def layer(x: jax.Array, held: tuple[dict, Pair]) -> tuple[jax.Array, Pair]:
        p, (keys, values) = held
        q, k, v = kind.projected(model, p, x, turn)
        keys = jax.lax.dynamic_update_slice_in_dim(keys, k[:, :, None], at, axis=2)
        values = jax.lax.dynamic_update_slice_in_dim(values, v[:, :, None], at, axis=2)
        q = q.reshape(batch, model.kv_heads, -1, model.head_size) * model.head_size**-0.5
        scores = jnp.einsum("bkgd,bkcd->bkgc", q, keys)  # (B, nkv, nh / nkv, C)
        scores = jnp.where(slots <= at, scores.astype(jnp.float32), -jnp.inf)
        shares = jax.nn.softmax(scores).astype(values.dtype)
        context = jnp.einsum("bkgc,bkcd->bkgd", shares, values)  # (B, nkv, nh / nkv, hs)
        return kind.fed_forward(model, p, x, context.reshape(batch, -1)), (keys, values)

    x, cache = through(layer, x, params["blocks"], cache)
    return cache, {"logits": kind.logits(model, params, x)}


def explicit_attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """Map (B, T, nh, hs), (B, T, nkv, hs) twice -> (B, T, nh, hs); each token attends up to itself."""
    batch, length, heads, size = q.shape
    q = q.reshape(batch, length, k.shape[2], -1, size) / math.sqrt(size)
    scores = jnp.einsum("btkgd,bskd->bkgts", q, k).astype(jnp.float32)  # (B, nkv, nh / nkv, T, T)
    future = jnp.triu(jnp.ones((length, length), bool), 1)  # (T, T)
    shares = jax.nn.softmax(jnp.where(future, -jnp.inf, scores)).astype(v.dtype)
    return jnp.einsum("bkgts,bskd->btkgd", shares, v).reshape(batch, length, heads, size)


def every_logit(
    kind: ModuleType,
    model: Causal,
    attend: Callable,
    around: Callable,
    divided: Callable,
    params: dict,
    input_ids: jax.Array,
) -> dict:
    """Map `input_ids` (B, T), int32 -> logits of every token's successor (B, T, V), without a cache.

    `around` wraps the layer's function; `divided` places states with their sequences.
    """
    batch, length = input_ids.shape
    x, turn = kind.embedded({**params, **params[STATE]}, input_ids, None)  # (B, T, H)
    x = divided(x)
    turn = [table.astype(x.dtype) for table in turn]

    def layer(p: dict, x: jax.Array) -> jax.Array:
        q, k, v = kind.projected(model, p, x, turn)  # (B, T, n, hs)
        return kind.fed_forward(model, p, x, attend(q, k, v).reshape(batch, length, -1))

    for p in params["blocks"]:
        x = divided(around(layer)(p, x))
    return {"logits": kind.logits(model, params, x), STATE: params[STATE]}


def prefill(
    kind: ModuleType, model: Causal, attend: Callable, params: dict, cache: Cache, input_ids: jax.Array
) -> tuple[Cache, dict]:
    """Map `input_ids` (B, T), int32 -> the cache filled from its beginning, and logits of the next token (B, V)."""
    batch, length = input_ids.shape
    x, turn = kind.embedded(params, input_ids, None)  # (B, T, H)
    write = partial(jax.lax.dynamic_update_slice_in_dim, start_index=0, axis=2)

    def layer(x: jax.Array, held: tuple[dict, Pair]) -> tuple[jax.Array, Pair]:
        p, (keys, values) = held
        q, k, v = kind.projected(model, p, x, turn)  # (B, T, n, hs)
        written = write(keys, k.swapaxes(1, 2)), write(values, v.swapaxes(1, 2))
        return kind.fed_forward(model, p, x, attend(q, k, v).reshape(batch, length, -1)), written

    x, cache = through(layer, x, params["blocks"], cache)
    return cache, {"logits": kind.logits(model, params, x[:, -1])}
