"""Models as pure functions over a tree of parameters, operator for operator as in the other frameworks.

A model is `(params, forward, detail)`: `forward(params, *inputs)` returns the outputs by name, and `detail` says what
was chosen on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from frameworks.jax import attention, lstm, probes, resnet, vit
from frameworks.jax import gpt as gpt_model
from frameworks.jax.layers import embedding, layer_norm, linear, tree
from measurement.cells import Cell
from workloads import bert as bert_workload
from workloads import mlp as mlp_workload
from workloads.spec import Arrays, Workload


def explicit_attention(q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array | None) -> jax.Array:
    q, k, v = (y.transpose(0, 2, 1, 3) for y in (q, k, v))  # (B, nh, S, hs)
    scores = q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1])  # (B, nh, S, S)
    if mask is not None:
        blocked = (1 - mask[:, None, None, :]).astype(q.dtype)  # (B, 1, 1, S)
        scores = scores + blocked * jnp.finfo(q.dtype).min
    return (jax.nn.softmax(scores) @ v).transpose(0, 2, 1, 3)  # (B, S, nh, hs)


def fused_attention(kernel: str, q: jax.Array, k: jax.Array, v: jax.Array, mask: jax.Array | None = None) -> jax.Array:
    if mask is not None:
        length = q.shape[1]
        mask = jnp.broadcast_to(mask[:, None, None, :] > 0, (len(mask), 1, length, length))  # cuDNN wants (B, 1, S, S)
    return jax.nn.dot_product_attention(q, k, v, mask=mask, implementation=kernel)  # (B, S, nh, hs)


def encoder_layer(p: dict, x: jax.Array, mask: jax.Array | None, heads: int, attend: Callable) -> jax.Array:
    batch, length, hidden = x.shape
    norm = partial(layer_norm, epsilon=bert_workload.LAYER_NORM_EPSILON)
    attention, names = p["attention"], ("query", "key", "value")
    q, k, v = (linear(attention["self"][n], x).reshape(batch, length, heads, -1) for n in names)  # (B, S, nh, hs)
    context = attend(q, k, v, mask).reshape(batch, length, hidden)  # (B, S, H)
    x = norm(attention["output"]["LayerNorm"], x + linear(attention["output"]["dense"], context))
    y = jax.nn.gelu(linear(p["intermediate"]["dense"], x), approximate=False)  # (B, S, I)
    return norm(p["output"]["LayerNorm"], x + linear(p["output"]["dense"], y))  # (B, S, H)


def bert_forward(heads: int, attend: Callable, params: dict, input_ids: jax.Array, attention_mask=None) -> dict:
    """`input_ids` and `attention_mask` (B, S), int32 -> hidden states (B, S, H) and pooled output (B, H)."""
    p = params["embeddings"]
    x = embedding(p["word_embeddings"], input_ids)  # (B, S, H)
    x = x + embedding(p["position_embeddings"], jnp.arange(input_ids.shape[1]))  # (S, H) broadcast
    x = x + embedding(p["token_type_embeddings"], jnp.zeros_like(input_ids))  # (B, S, H)
    x = layer_norm(p["LayerNorm"], x, bert_workload.LAYER_NORM_EPSILON)
    layers = params["encoder"]["layer"]
    for index in range(len(layers)):
        x = encoder_layer(layers[str(index)], x, attention_mask, heads, attend)
    return {"last_hidden_state": x, "pooler_output": jnp.tanh(linear(params["pooler"]["dense"], x[:, 0]))}


def mlp_forward(params: dict, x: jax.Array) -> dict:
    """`x` (B, W) -> (B, W)."""
    layers = params["layers"]
    for index in range(len(layers)):
        x = linear(layers[str(index)]["linear"], x)  # (B, W)
        x = jax.nn.relu(layer_norm(layers[str(index)]["norm"], x, mlp_workload.LAYER_NORM_EPSILON))
    return {"output": x}


def bert(workload: Workload, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype) -> tuple:
    attend, detail = explicit_attention, ""
    if cell.parameter("attention") == "fused":
        attend, detail = attention.fused(fused_attention, workload, cell, dtype)
    return tree(weights, load), partial(bert_forward, workload.heads, attend), detail


def matmul_forward(params: dict, x: jax.Array) -> dict:
    """`x` (N, N) -> (N, N)."""
    return {"output": x @ params["weight"]}


def chain_forward(repeat: int, params: dict, x: jax.Array) -> dict:
    """`x` (N,) -> (N,), multiplied `repeat` times."""
    for _ in range(repeat):
        x = x * params["factor"]  # (N,)
    return {"output": x}


def gpt(workload: Workload, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype) -> tuple:
    attend, detail = gpt_model.explicit_attention, ""
    if cell.parameter("attention") == "fused":
        attend, detail = attention.fused(gpt_model.fused_attention, workload, cell, dtype)
    forward = partial(gpt_model.forward, workload.heads, attend, cell.pass_name == "training")
    return tree(weights, load), forward, detail


def matmul(workload: Workload, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype) -> tuple:
    return tree(weights, load), matmul_forward, ""


def pointwise_chain(workload: Workload, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype) -> tuple:
    return tree(weights, load), partial(chain_forward, int(cell.parameter("repeat"))), ""


def probe(forward: Callable, workload: Workload, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype) -> tuple:
    return tree(weights, load), partial(forward, dict(cell.parameters)), ""


def mlp(workload: Workload, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype) -> tuple:
    return tree(weights, load), mlp_forward, ""


MODELS = {"bert": bert, "gpt": gpt, "mlp": mlp, "matmul": matmul, "pointwise-chain": pointwise_chain}
MODELS |= {"resnet": resnet.build, "vit": partial(vit.build, explicit_attention, fused_attention), "lstm": lstm.build}
MODELS |= {name: partial(probe, forward) for name, forward in probes.FORWARD.items()}
