"""Models as pure functions over a tree of parameters, operator for operator as in the other frameworks.

A model is `(params, forward, detail)`: `forward(params, *inputs)` returns the outputs by name, and `detail` describes
the chosen implementation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from frameworks.jax.models import attention, causal, lstm, resnet, vit
from frameworks.jax.models import gpt as gpt_model
from frameworks.jax.models import llama as llama_model
from frameworks.jax.models.layers import STATE, embedding, layer_norm, linear, recomputed, tree
from frameworks.jax.modes import compiling, parallel
from measurement.cells import Cell
from workloads import bert as bert_workload
from workloads import mlp as mlp_workload
from workloads.spec import Arrays, Parameters, Workload


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


def embeddings(p: dict, input_ids: jax.Array) -> jax.Array:
    x = embedding(p["word_embeddings"], input_ids)  # (B, S, H)
    x = x + embedding(p["position_embeddings"], jnp.arange(input_ids.shape[1]))  # (S, H) broadcast
    x = x + embedding(p["token_type_embeddings"], jnp.zeros_like(input_ids))  # (B, S, H)
    return layer_norm(p["LayerNorm"], x, bert_workload.LAYER_NORM_EPSILON)


def encoder_layer(heads: int, attend: Callable, p: dict, x: jax.Array, mask: jax.Array | None) -> jax.Array:
    batch, length, hidden = x.shape
    norm = partial(layer_norm, epsilon=bert_workload.LAYER_NORM_EPSILON)
    attention, names = p["attention"], ("query", "key", "value")
    q, k, v = (linear(attention["self"][n], x).reshape(batch, length, heads, -1) for n in names)  # (B, S, nh, hs)
    context = attend(q, k, v, mask).reshape(batch, length, hidden)  # (B, S, H)
    x = norm(attention["output"]["LayerNorm"], x + linear(attention["output"]["dense"], context))
    y = jax.nn.gelu(linear(p["intermediate"]["dense"], x), approximate=False)  # (B, S, I)
    return norm(p["output"]["LayerNorm"], x + linear(p["output"]["dense"], y))  # (B, S, H)


def pooler(p: dict, x: jax.Array) -> jax.Array:
    return jnp.tanh(linear(p["dense"], x[:, 0]))  # (B, H)


def bert_forward(
    embed: Callable, layer: Callable, pool: Callable, params: dict, input_ids: jax.Array, attention_mask=None
) -> dict:
    """Map `input_ids` and `attention_mask` (B, S), int32 -> hidden states (B, S, H) and pooled output (B, H)."""
    x = embed(params["embeddings"], input_ids)  # (B, S, H)
    layers = params["encoder"]["layer"]
    for index in range(len(layers)):
        x = layer(layers[str(index)], x, attention_mask)
    return {"last_hidden_state": x, "pooler_output": pool(params["pooler"], x)}


def mlp_layer(p: dict, x: jax.Array) -> jax.Array:
    x = linear(p["linear"], x)  # (B, W)
    return jax.nn.relu(layer_norm(p["norm"], x, mlp_workload.LAYER_NORM_EPSILON))


def mlp_forward(layer: Callable, params: dict, x: jax.Array) -> dict:
    """Map `x` (B, W) -> (B, W)."""
    layers = params["layers"]
    for index in range(len(layers)):
        x = layer(layers[str(index)], x)
    return {"output": x}


def bert(workload: Workload, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype) -> tuple:
    attend, detail = explicit_attention, ""
    if cell.parameter("attention") == "fused":
        attend, detail = attention.fused(fused_attention, workload, cell, dtype)
    layer = recomputed(cell)(partial(encoder_layer, workload.heads, attend))
    parts = map(compiling.blocks(cell), (embeddings, layer, pooler))
    return tree(weights, load), partial(bert_forward, *parts), detail


def product(parameters: Parameters, params: dict, x: jax.Array) -> dict:
    """Map `x` (N, N) -> (N, N)."""
    return {"output": x @ params["weight"]}


def chain(parameters: Parameters, params: dict, x: jax.Array) -> dict:
    """Map `x` (N,) -> (N,), multiplied `repeat` times."""
    for _ in range(int(parameters["repeat"])):
        x = x * params["factor"]  # (N,)
    return {"output": x}


def gpt(workload: Workload, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype) -> tuple:
    attend, detail = gpt_model.explicit_attention, ""
    if cell.parameter("attention") == "fused":
        attend, detail = attention.fused(gpt_model.fused_attention, workload, cell, dtype)
    layer = recomputed(cell)(partial(gpt_model.block, workload.heads, attend))
    head = partial(gpt_model.head, cell.pass_name == "training")
    parts = map(compiling.blocks(cell), (gpt_model.embeddings, layer, head))
    return tree(weights, load), partial(gpt_model.forward, *parts), detail


def llama(workload: Workload, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype) -> tuple:
    """Return the model in training; its prefill and decode passes are built where their cache is."""
    attend, detail = causal.explicit_attention, ""
    if cell.parameter("attention") == "fused":
        attend, detail = attention.fused(gpt_model.fused_attention, workload, cell, dtype)
    params = llama_model.parameters(workload, weights, load, int(cell.parameter("seq_len")))
    params[STATE] = {name: params.pop(name) for name in ("cosines", "sines")}  # which no gradient reaches
    divided = parallel.divided(params["last_norm"]) if cell.ranks > 1 else lambda x: x
    forward = partial(causal.every_logit, llama_model, workload, attend, recomputed(cell), divided)
    return params, forward, detail


def cosines(parameters: Parameters, params: dict, x: jax.Array) -> dict:
    """Map `x` (N,) -> (N,) by `repeat` cosines."""
    for _ in range(int(parameters["repeat"])):
        x = jnp.cos(x)  # (N,)
    return {"output": x}


def doubled(parameters: Parameters, params: dict, x: jax.Array) -> dict:
    """Map `x` (N,) -> (N,)."""
    return {"output": x + x}


def additions(parameters: Parameters, params: dict, x: jax.Array) -> dict:
    """Map `x` (N,) -> (N,) by `additions` tiny additions, each on the last one's result."""
    terms = (params["up"], params["down"])
    for index in range(int(parameters["additions"])):
        x = x + terms[index % 2]  # (N,)
    return {"output": x}


def probe(forward: Callable, workload: Workload, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype) -> tuple:
    return tree(weights, load), compiling.blocks(cell)(partial(forward, dict(cell.parameters))), ""


def mlp(workload: Workload, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype) -> tuple:
    return tree(weights, load), partial(mlp_forward, compiling.blocks(cell)(mlp_layer)), ""


PROBES = {"matmul": product, "pointwise-chain": chain, "fused-cos": cosines, "stream": doubled}
PROBES |= {"op-overhead": additions}
MODELS = {"bert": bert, "gpt": gpt, "llama": llama, "mlp": mlp}
MODELS |= {"resnet": resnet.build, "vit": partial(vit.build, explicit_attention, fused_attention), "lstm": lstm.build}
MODELS |= {name: partial(probe, forward) for name, forward in PROBES.items()}
