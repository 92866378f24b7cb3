"""Llama as pure functions over parameters, operator for operator as in the other frameworks' files."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from frameworks.jax.models.matrices import Matrix, product, stored
from workloads.llama import EMBEDDING, HEAD, LAST_NORM, NORM_EPSILON, Llama
from workloads.spec import Arrays


def parameters(model: Llama, weights: Arrays, load: Callable[[np.ndarray], jax.Array], places: int) -> dict:
    """Return the model's parameters; products that share their input are one."""

    def linear(prefix: str, *names: str) -> Matrix:
        parts = [load(weights[f"{prefix}.{name}_proj.weight"]) for name in names]
        return stored(jnp.concatenate(parts) if len(parts) > 1 else parts[0], model.quant)

    def block(prefix: str) -> dict:
        return {
            "input_norm": load(weights[f"{prefix}.input_layernorm.weight"]),
            "qkv": linear(f"{prefix}.self_attn", "q", "k", "v"),  # ((nh + 2 nkv) * hs, H)
            "output": linear(f"{prefix}.self_attn", "o"),
            "inner_norm": load(weights[f"{prefix}.post_attention_layernorm.weight"]),
            "gate_up": linear(f"{prefix}.mlp", "gate", "up"),
            "down": linear(f"{prefix}.mlp", "down"),
        }

    cosines, sines = (load(table.astype(np.float32)) for table in model.rotary(np.arange(places)))  # (C, hs)
    head = {} if model.tied else {"head": stored(load(weights[HEAD]), model.quant)}
    return head | {
        "embedding": load(weights[EMBEDDING]),
        "blocks": [block(f"model.layers.{layer}") for layer in range(model.layers)],
        "last_norm": load(weights[LAST_NORM]),
        "cosines": cosines,
        "sines": sines,
    }


def norm(x: jax.Array, weight: jax.Array) -> jax.Array:
    wide = x.astype(jnp.float32)
    wide = wide * jax.lax.rsqrt(jnp.mean(wide * wide, axis=-1, keepdims=True) + NORM_EPSILON)
    return wide.astype(x.dtype) * weight


def embedded(params: dict, ids: jax.Array, at: jax.Array | None) -> tuple[jax.Array, tuple]:
    """Map tokens (B,) at a place, or prompts (B, T) where it is None -> states (..., H), and the rotation of heads."""
    tables = params["cosines"], params["sines"]
    if at is None:
        turn = tuple(table[: ids.shape[1], None] for table in tables)  # (T, 1, hs)
    else:
        turn = tuple(jax.lax.dynamic_slice_in_dim(table, at, 1) for table in tables)  # (1, hs)
    return jnp.take(params["embedding"], ids, axis=0), turn


def projected(model: Llama, p: dict, x: jax.Array, turn: tuple) -> tuple:
    """Map (..., H) -> turned queries (..., nh, hs) and keys (..., nkv, hs), and values."""
    cosines, sines = turn
    qkv = product(norm(x, p["input_norm"]), p["qkv"], model.product)
    qkv = qkv.reshape(*x.shape[:-1], -1, model.head_size)
    qk, v = jnp.split(qkv, [model.heads + model.kv_heads], axis=-2)
    qk = qk * cosines + jnp.roll(qk, model.head_size // 2, axis=-1) * sines
    q, k = jnp.split(qk, [model.heads], axis=-2)
    return q, k, v


def fed_forward(model: Llama, p: dict, x: jax.Array, context: jax.Array) -> jax.Array:
    x = x + product(context, p["output"], model.product)  # (..., H)
    gate, up = jnp.split(product(norm(x, p["inner_norm"]), p["gate_up"], model.product), 2, axis=-1)  # (..., I)
    return x + product(jax.nn.silu(gate) * up, p["down"], model.product)


def logits(model: Llama, params: dict, x: jax.Array) -> jax.Array:
    """Map (B, H) -> (B, V)."""
    return product(norm(x, params["last_norm"]), params.get("head", params["embedding"]), model.product)
