"""Models as ONNX graphs, operator for operator as in the other frameworks' plain files.

A model is `write(graph, workload, parameters, weights, *inputs)`, which takes names of tensors and returns those of its
outputs under the workload's names.
"""

from __future__ import annotations

import numpy as np

from frameworks.onnxruntime.models.layers import (
    attended,
    embedding,
    heads,
    linear,
    norm,
    positions,
    rows_linear,
    scores,
)
from frameworks.onnxruntime.writer import Writer
from workloads import bert as bert_workload
from workloads import gpt as gpt_workload
from workloads import mlp as mlp_workload
from workloads.spec import Arrays, Parameters, Workload

Outputs = dict[str, str]
EPSILON, GPT_EPSILON = bert_workload.LAYER_NORM_EPSILON, gpt_workload.LAYER_NORM_EPSILON


def encoder_layer(
    graph: Writer, model: bert_workload.Bert, weights: Arrays, name: str, x: str, mask: str | None
) -> str:
    width = model.hidden // model.heads
    attention = f"{name}.attention.self"
    q, k, v = (
        heads(graph, linear(graph, weights, f"{attention}.{part}", x), model.heads, width)  # (B, nh, S, hs)
        for part in ("query", "key", "value")
    )
    scored = scores(graph, q, k, width)  # (B, nh, S, S)
    if mask is not None:
        scored = graph.op("Add", scored, mask)
    context = attended(graph, scored, v, model.hidden)  # (B, S, H)
    output = f"{name}.attention.output"
    x = graph.op("Add", linear(graph, weights, f"{output}.dense", context), x)
    x = norm(graph, weights, f"{output}.LayerNorm", x, EPSILON)
    y = graph.op("Gelu", linear(graph, weights, f"{name}.intermediate.dense", x))  # (B, S, I), the exact GELU
    x = graph.op("Add", linear(graph, weights, f"{name}.output.dense", y), x)
    return norm(graph, weights, f"{name}.output.LayerNorm", x, EPSILON)  # (B, S, H)


def additive(graph: Writer, mask: str) -> str:
    """Map `mask` (B, S), 1 where attended, -> (B, 1, 1, S), the least number where not."""
    shown = graph.op("Cast", graph.op("Unsqueeze", mask, graph.constant([1, 2])), to=1)  # float32
    hidden = graph.op("Sub", graph.constant(1, np.float32), shown)
    return graph.op("Mul", hidden, graph.constant(np.finfo(np.float32).min, np.float32))


def bert(
    graph: Writer, model: bert_workload.Bert, parameters: Parameters, weights: Arrays, ids: str, mask: str | None = None
) -> Outputs:
    """Map `input_ids` and `attention_mask` (B, S) -> hidden states (B, S, H) and pooled output (B, H)."""
    tables = "embeddings.{}_embeddings"
    x = embedding(graph, weights, tables.format("word"), ids)  # (B, S, H)
    x = graph.op("Add", x, embedding(graph, weights, tables.format("position"), positions(graph, ids)))  # (S, H)
    types = graph.op("Expand", graph.constant(0), graph.op("Shape", ids))  # (B, S)
    x = graph.op("Add", x, embedding(graph, weights, tables.format("token_type"), types))
    x = norm(graph, weights, "embeddings.LayerNorm", x, EPSILON)
    blocked = additive(graph, mask) if mask else None
    for layer in range(model.layers):
        x = encoder_layer(graph, model, weights, f"encoder.layer.{layer}", x, blocked)
    first = graph.op("Gather", x, graph.constant(0), axis=1)  # (B, H)
    return {
        "last_hidden_state": x,
        "pooler_output": graph.op("Tanh", rows_linear(graph, weights, "pooler.dense", first)),
    }


def mlp(graph: Writer, model: Workload, parameters: Parameters, weights: Arrays, x: str) -> Outputs:
    """Map `x` (B, W) -> (B, W)."""
    for layer in range(int(parameters["depth"])):
        x = rows_linear(graph, weights, f"layers.{layer}.linear", x)  # (B, W)
        x = norm(graph, weights, f"layers.{layer}.norm", x, mlp_workload.LAYER_NORM_EPSILON)
        x = graph.op("Relu", x)
    return {"output": x}


def matmul(graph: Writer, model: Workload, parameters: Parameters, weights: Arrays, x: str) -> Outputs:
    """Map `x` (N, N) -> (N, N)."""
    return {"output": graph.op("MatMul", x, graph.weight("weight", weights["weight"].T))}


def block(graph: Writer, model: gpt_workload.Gpt, weights: Arrays, name: str, x: str, future: str) -> str:
    width = model.hidden // model.heads
    qkv = linear(graph, weights, f"{name}.attn.c_attn", norm(graph, weights, f"{name}.ln_1", x, GPT_EPSILON))
    parts = graph.ops("Split", 3, qkv, axis=-1, num_outputs=3)  # (B, T, H) each
    q, k, v = (heads(graph, part, model.heads, width) for part in parts)  # (B, nh, T, hs)
    blocked = graph.op("Where", future, graph.constant(-np.inf, np.float32), scores(graph, q, k, width))
    x = graph.op("Add", x, linear(graph, weights, f"{name}.attn.c_proj", attended(graph, blocked, v, model.hidden)))
    y = linear(graph, weights, f"{name}.mlp.c_fc", norm(graph, weights, f"{name}.ln_2", x, GPT_EPSILON))
    return graph.op("Add", x, linear(graph, weights, f"{name}.mlp.c_proj", graph.op("Gelu", y)))  # (B, T, H)


def gpt(graph: Writer, model: gpt_workload.Gpt, parameters: Parameters, weights: Arrays, ids: str) -> Outputs:
    """Map `input_ids` (B, T) -> logits of the next token (B, V), with tied embeddings."""
    places = positions(graph, ids)  # (T,)
    x = graph.op("Add", embedding(graph, weights, "wte", ids), embedding(graph, weights, "wpe", places))  # (B, T, H)
    columns = graph.op("Unsqueeze", places, graph.constant([1]))  # (T, 1)
    future = graph.op("Greater", places, columns)  # (T, T): a key that comes after its query
    for layer in range(model.layers):
        x = block(graph, model, weights, f"h.{layer}", x, future)
    last = graph.op("Gather", norm(graph, weights, "ln_f", x, GPT_EPSILON), graph.constant(-1), axis=1)  # (B, H)
    return {"logits": graph.op("Gemm", last, graph.weight("wte.weight", weights["wte.weight"]), transB=1)}


def chain(graph: Writer, model: Workload, parameters: Parameters, weights: Arrays, x: str) -> Outputs:
    """Multiply `repeat` times."""
    for _ in range(int(parameters["repeat"])):
        x = graph.op("Mul", x, graph.weight("factor", weights["factor"]))
    return {"output": x}


def cosines(graph: Writer, model: Workload, parameters: Parameters, weights: Arrays, x: str) -> Outputs:
    """Map `x` (N,) -> (N,) by `repeat` cosines."""
    for _ in range(int(parameters["repeat"])):
        x = graph.op("Cos", x)
    return {"output": x}


def doubled(graph: Writer, model: Workload, parameters: Parameters, weights: Arrays, x: str) -> Outputs:
    return {"output": graph.op("Add", x, x)}


def additions(graph: Writer, model: Workload, parameters: Parameters, weights: Arrays, x: str) -> Outputs:
    """Map `x` (N,) -> (N,) by `additions` tiny additions, each on the last one's result."""
    for index in range(int(parameters["additions"])):
        name = ("up", "down")[index % 2]
        x = graph.op("Add", x, graph.weight(name, weights[name]))
    return {"output": x}


MODELS = {"bert": bert, "gpt": gpt, "mlp": mlp, "matmul": matmul, "pointwise-chain": chain}
MODELS |= {"fused-cos": cosines, "stream": doubled, "op-overhead": additions}
