"""GPT as pure functions over a tree of parameters, operator for operator as in the other frameworks' files."""

from __future__ import annotations

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp

from frameworks.jax.models.layers import embedding, layer_norm
from workloads.gpt import LAYER_NORM_EPSILON


def norm(p: dict, x: jax.Array) -> jax.Array:
    return layer_norm(p, x, LAYER_NORM_EPSILON)


def explicit_attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    q, k, v = (y.transpose(0, 2, 1, 3) for y in (q, k, v))  # (B, nh, T, hs)
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])  # (B, nh, T, T)
    future = jnp.triu(jnp.ones(scores.shape[-2:], bool), 1)  # (T, T)
    scores = jnp.where(future, -jnp.inf, scores)
    return (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3)  # (B, T, nh, hs)


def fused_attention(kernel: str, q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    return jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation=kernel)  # (B, T, nh, hs)


def block(heads: int, attend: Callable, p: dict, x: jax.Array) -> jax.Array:
    batch, length, hidden = x.shape
    qkv = norm(p["ln_1"], x) @ p["attn"]["c_attn"]["weight"]  # (B, T, 3H)
    q, k, v = (y.reshape(batch, length, heads, -1) for y in jnp.split(qkv, 3, axis=-1))  # (B, T, nh, hs)
    context = attend(q, k, v).reshape(batch, length, hidden)  # (B, T, H)
    x = x + context @ p["attn"]["c_proj"]["weight"]
    y = jax.nn.gelu(norm(p["ln_2"], x) @ p["mlp"]["c_fc"]["weight"], approximate=False)  # (B, T, 4H)
    return x + y @ p["mlp"]["c_proj"]["weight"]  # (B, T, H)


def embeddings(words: dict, places: dict, input_ids: jax.Array) -> jax.Array:
    return embedding(words, input_ids) + embedding(places, jnp.arange(input_ids.shape[1]))  # (B, T, H)


def head(every_token: bool, last_norm: dict, words: dict, x: jax.Array) -> jax.Array:
    """Map states (B, T, H) -> logits of the next token (B, V), or (B, T, V) of every token's."""
    x = norm(last_norm, x)
    return (x if every_token else x[:, -1]) @ words["weight"].T  # tied embeddings


def forward(embed: Callable, layer: Callable, logits: Callable, params: dict, input_ids: jax.Array) -> dict:
    """Map `input_ids` (B, T), int32 -> logits, as `head` has them."""
    x = embed(params["wte"], params["wpe"], input_ids)  # (B, T, H)
    for index in range(len(params["h"])):
        x = layer(params["h"][str(index)], x)
    return {"logits": logits(params["ln_f"], params["wte"], x)}
