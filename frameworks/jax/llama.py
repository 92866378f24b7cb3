"""Llama as pure functions over parameters and a static cache, operator for operator as in the other frameworks' files.

The cache is a list with a layer's keys and values each, (B, nkv, C, hs); a call gives a new one, in the old one's
memory where that was donated. Matrices are (out, in), as checkpoints have them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from workloads.decode import PAST
from workloads.llama import EMBEDDING, HEAD, LAST_NORM, NORM_EPSILON, Llama
from workloads.spec import Arrays

Cache = list[tuple[jax.Array, jax.Array]]


def parameters(model: Llama, weights: Arrays, load: Callable[[np.ndarray], jax.Array], places: int) -> dict:
    """The model's parameters; products that have their input in common are one."""

    def joined(prefix: str, *names: str) -> jax.Array:
        return jnp.concatenate([load(weights[f"{prefix}.{name}.weight"]) for name in names])

    def block(prefix: str) -> dict:
        return {
            "input_norm": load(weights[f"{prefix}.input_layernorm.weight"]),
            "qkv": joined(f"{prefix}.self_attn", "q_proj", "k_proj", "v_proj"),  # ((nh + 2 nkv) * hs, H)
            "output": load(weights[f"{prefix}.self_attn.o_proj.weight"]),
            "inner_norm": load(weights[f"{prefix}.post_attention_layernorm.weight"]),
            "gate_up": joined(f"{prefix}.mlp", "gate_proj", "up_proj"),
            "down": load(weights[f"{prefix}.mlp.down_proj.weight"]),
        }

    cosines, sines = (load(table.astype(np.float32)) for table in model.rotary(np.arange(places)))  # (C, hs)
    head = {} if model.tied else {"head": load(weights[HEAD])}
    return head | {
        "embedding": load(weights[EMBEDDING]),
        "blocks": [block(f"model.layers.{layer}") for layer in range(model.layers)],
        "last_norm": load(weights[LAST_NORM]),
        "cosines": cosines,
        "sines": sines,
    }


def empty(model: Llama, batch: int, places: int, dtype: np.dtype) -> Cache:
    """A cache with nothing in it."""
    shape = (batch, model.kv_heads, places, model.head_size)
    return [(jnp.zeros(shape, dtype), jnp.zeros(shape, dtype)) for _ in range(model.layers)]


def past(model: Llama, batch: int, weights: Arrays, load: Callable[[np.ndarray], jax.Array]) -> Cache:
    """A cache with the same past for every sequence."""
    keys, values = (weights[name] for name in PAST)  # (layers, nkv, C, hs)
    return [
        tuple(jnp.tile(load(part[layer])[None], (batch, 1, 1, 1)) for part in (keys, values))
        for layer in range(model.layers)
    ]


def product(x: jax.Array, weight: jax.Array) -> jax.Array:
    """(..., in) and (out, in) -> (..., out); without a transposition, which op by op would be a copy."""
    return jax.lax.dot_general(x, weight, (((x.ndim - 1,), (1,)), ((), ())))


def norm(x: jax.Array, weight: jax.Array) -> jax.Array:
    wide = x.astype(jnp.float32)
    wide = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + NORM_EPSILON)
    return wide.astype(x.dtype) * weight


def projected(model: Llama, p: dict, x: jax.Array, cosines: jax.Array, sines: jax.Array) -> tuple:
    """(..., H) -> turned queries (..., nh, hs) and keys (..., nkv, hs), and values."""
    qkv = product(norm(x, p["input_norm"]), p["qkv"])
    qkv = qkv.reshape(*x.shape[:-1], -1, model.head_size)
    qk, v = jnp.split(qkv, [model.heads + model.kv_heads], axis=-2)
    qk = qk * cosines + jnp.roll(qk, model.head_size // 2, axis=-1) * sines
    q, k = jnp.split(qk, [model.heads], axis=-2)
    return q, k, v


def fed_forward(p: dict, x: jax.Array, context: jax.Array) -> jax.Array:
    x = x + product(context, p["output"])  # (..., H)
    gate, up = jnp.split(product(norm(x, p["inner_norm"]), p["gate_up"]), 2, axis=-1)  # (..., I)
    return x + product(jax.nn.silu(gate) * up, p["down"])


def logits(params: dict, x: jax.Array) -> jax.Array:
    """(B, H) -> (B, V)."""
    return product(norm(x, params["last_norm"]), params.get("head", params["embedding"]))


def decode(model: Llama, params: dict, cache: Cache, tokens: jax.Array, place: jax.Array) -> tuple[Cache, dict]:
    """`tokens` (B,) and their place (1,), int32 -> the cache with them, and logits of the next token (B, V)."""
    at = place[0]
    cosines, sines = (jax.lax.dynamic_slice_in_dim(params[name], at, 1) for name in ("cosines", "sines"))  # (1, hs)
    slots = jnp.arange(params["cosines"].shape[0])  # (C,)
    x = jnp.take(params["embedding"], tokens, axis=0)  # (B, H)
    batch, updated = len(tokens), []
    for p, (keys, values) in zip(params["blocks"], cache, strict=True):
        q, k, v = projected(model, p, x, cosines, sines)
        keys = jax.lax.dynamic_update_slice_in_dim(keys, k[:, :, None], at, axis=2)
        values = jax.lax.dynamic_update_slice_in_dim(values, v[:, :, None], at, axis=2)
        updated.append((keys, values))
        q = q.reshape(batch, model.kv_heads, -1, model.head_size) * model.head_size**-0.5
        scores = jnp.einsum("bkgd,bkcd->bkgc", q, keys)  # (B, nkv, nh / nkv, C)
        scores = jnp.where(slots <= at, scores.astype(jnp.float32), -jnp.inf)
        shares = jax.nn.softmax(scores).astype(values.dtype)
        context = jnp.einsum("bkgc,bkcd->bkgd", shares, values)  # (B, nkv, nh / nkv, hs)
        x = fed_forward(p, x, context.reshape(batch, -1))
    return updated, {"logits": logits(params, x)}


def explicit_attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    """(B, T, nh, hs), (B, T, nkv, hs) twice -> (B, T, nh, hs); each token attends up to itself."""
    batch, length, heads, size = q.shape
    q = q.reshape(batch, length, k.shape[2], -1, size) / math.sqrt(size)
    scores = jnp.einsum("btkgd,bskd->bkgts", q, k).astype(jnp.float32)  # (B, nkv, nh / nkv, T, T)
    future = jnp.triu(jnp.ones((length, length), bool), 1)  # (T, T)
    shares = jax.nn.softmax(jnp.where(future, -jnp.inf, scores)).astype(v.dtype)
    return jnp.einsum("bkgts,bskd->btkgd", shares, v).reshape(batch, length, heads, size)


def prefill(model: Llama, attend: Callable, params: dict, cache: Cache, input_ids: jax.Array) -> tuple[Cache, dict]:
    """`input_ids` (B, T), int32 -> the cache filled from its beginning, and logits of the next token (B, V)."""
    batch, length = input_ids.shape
    cosines, sines = (params[name][:length, None] for name in ("cosines", "sines"))  # (T, 1, hs)
    x, updated = jnp.take(params["embedding"], input_ids, axis=0), []  # (B, T, H)
    for p, (keys, values) in zip(params["blocks"], cache, strict=True):
        q, k, v = projected(model, p, x, cosines, sines)  # (B, T, n, hs)
        write = partial(jax.lax.dynamic_update_slice_in_dim, start_index=0, axis=2)
        updated.append((write(keys, k.swapaxes(1, 2)), write(values, v.swapaxes(1, 2))))
        x = fed_forward(p, x, attend(q, k, v).reshape(batch, length, -1))
    return updated, {"logits": logits(params, x[:, -1])}
