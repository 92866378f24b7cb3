"""Vision transformers as pure functions over a tree of parameters, operator for operator as in the other frameworks."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from frameworks.jax.models import attention, images
from frameworks.jax.models.layers import layer_norm, linear
from measurement.cells import Cell
from workloads.spec import Arrays
from workloads.vit import LAYER_NORM_EPSILON, ViT


def block(p: dict, x: jax.Array, heads: int, attend: Callable) -> jax.Array:
    batch, length, hidden = x.shape
    self_attention = p["self_attention"]
    norm = partial(layer_norm, epsilon=LAYER_NORM_EPSILON)
    qkv = norm(p["ln_1"], x) @ self_attention["in_proj_weight"] + self_attention["in_proj_bias"]  # (B, S, 3H)
    q, k, v = (y.reshape(batch, length, heads, -1) for y in jnp.split(qkv, 3, axis=-1))  # (B, S, nh, hs)
    x = x + linear(self_attention["out_proj"], attend(q, k, v, None).reshape(batch, length, hidden))
    y = jax.nn.gelu(linear(p["mlp"]["0"], norm(p["ln_2"], x)), approximate=False)  # (B, S, 4H)
    return x + linear(p["mlp"]["3"], y)  # (B, S, H)


def forward(workload: ViT, layout: str, attend: Callable, params: dict, x: jax.Array) -> dict:
    """Map `x` (B, 3, I, I), or (B, I, I, 3) where channels are last -> logits (B, classes)."""
    kernel, encoder = params["conv_proj"], params["encoder"]
    x = images.convolution(layout, kernel["weight"], x, workload.patch, 0)
    if layout == "nchw":
        x = x.reshape(*x.shape[:2], -1).swapaxes(1, 2)  # (B, patches, H)
    else:
        x = x.reshape(x.shape[0], -1, x.shape[3])  # (B, patches, H)
    x = x + kernel["bias"]
    token = jnp.broadcast_to(params["class_token"], (x.shape[0], 1, x.shape[2]))
    x = jnp.concatenate([token, x], axis=1) + encoder["pos_embedding"]  # (B, S, H)
    for layer in range(workload.layers):
        x = block(encoder["layers"][f"encoder_layer_{layer}"], x, workload.heads, attend)
    x = layer_norm(encoder["ln"], x, LAYER_NORM_EPSILON)
    return {"logits": linear(params["heads"]["head"], x[:, 0])}


def build(
    explicit: Callable, fused: Callable, workload: ViT, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype
) -> tuple:
    """Return the model; `explicit` and `fused` attend from heads (B, S, nh, hs), with a mask."""
    layout, attend, detail = str(cell.parameter("layout")), explicit, ""
    if cell.parameter("attention") == "fused":
        length = workload.length(dict(cell.parameters))
        attend, detail = attention.fused(fused, workload, cell, dtype, length)
    return images.params_of(weights, load, layout), partial(forward, workload, layout, attend), detail
