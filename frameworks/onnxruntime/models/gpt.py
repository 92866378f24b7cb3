"""GPT as an ONNX graph, operator for operator as in the other frameworks' files."""

from __future__ import annotations

import numpy as np

from frameworks.onnxruntime.models.layers import attended, embedding, heads, linear, norm, positions, scores
from frameworks.onnxruntime.writer import Writer
from workloads.gpt import LAYER_NORM_EPSILON, Gpt
from workloads.spec import Arrays, Parameters


def block(graph: Writer, model: Gpt, weights: Arrays, name: str, x: str, future: str) -> str:
    width = model.hidden // model.heads
    qkv = linear(graph, weights, f"{name}.attn.c_attn", norm(graph, weights, f"{name}.ln_1", x, LAYER_NORM_EPSILON))
    parts = graph.ops("Split", 3, qkv, axis=-1, num_outputs=3)  # (B, T, H) each
    q, k, v = (heads(graph, part, model.heads, width) for part in parts)  # (B, nh, T, hs)
    blocked = graph.op("Where", future, graph.constant(-np.inf, np.float32), scores(graph, q, k, width))
    x = graph.op("Add", x, linear(graph, weights, f"{name}.attn.c_proj", attended(graph, blocked, v, model.hidden)))
    y = linear(graph, weights, f"{name}.mlp.c_fc", norm(graph, weights, f"{name}.ln_2", x, LAYER_NORM_EPSILON))
    return graph.op("Add", x, linear(graph, weights, f"{name}.mlp.c_proj", graph.op("Gelu", y)))  # (B, T, H)


def gpt(graph: Writer, model: Gpt, parameters: Parameters, weights: Arrays, ids: str) -> dict[str, str]:
    """Map `input_ids` (B, T) -> logits of the next token (B, V), with tied embeddings."""
    places = positions(graph, ids)  # (T,)
    x = graph.op("Add", embedding(graph, weights, "wte", ids), embedding(graph, weights, "wpe", places))  # (B, T, H)
    columns = graph.op("Unsqueeze", places, graph.constant([1]))  # (T, 1)
    future = graph.op("Greater", places, columns)  # (T, T): a key that comes after its query
    for layer in range(model.layers):
        x = block(graph, model, weights, f"h.{layer}", x, future)
    last = graph.op("Gather", norm(graph, weights, "ln_f", x, LAYER_NORM_EPSILON), graph.constant(-1), axis=1)  # (B, H)
    return {"logits": graph.op("Gemm", last, graph.weight("wte.weight", weights["wte.weight"]), transB=1)}
