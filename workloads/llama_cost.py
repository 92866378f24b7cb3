"""What a call of a Llama costs: floating-point operations and bytes, weights and cache included."""

from __future__ import annotations

import math

from workloads.spec import BYTES_PER_VALUE, Cost, OperatorCost, Parameters, linear_cost


def prefill(model, parameters: Parameters, dtype: str, fused: bool) -> Cost:
    """A prompt read, its keys and values written to the cache, and the logits of its last token."""
    batch, length = int(parameters["batch_size"]), int(parameters["prompt"])
    attended = length * (length + 1) // 2 if fused else length * length
    return _cost(model, BYTES_PER_VALUE[dtype], batch, length, attended, length, fused, reads_cache=False)


def decode(model, parameters: Parameters, dtype: str, fused: bool) -> Cost:
    """One token a sequence: every slot of the static cache is read, whether a token is in it yet or not."""
    batch, context = int(parameters["batch_size"]), int(parameters["context"])
    return _cost(model, BYTES_PER_VALUE[dtype], batch, 1, context, context, fused, reads_cache=True)


def _cost(model, w: int, batch: int, length: int, attended: int, context: int, fused: bool, reads_cache: bool) -> Cost:
    """`length` tokens a sequence, with `attended` pairs of query and key and `context` keys in all."""
    rows, h, size = batch * length, model.hidden, model.head_size
    kv, inner = model.kv_heads * size, model.intermediate
    scores = batch * model.heads * attended
    written = 0 if fused else scores  # that reach memory
    cached, appended = 2 * batch * context * kv, 2 * rows * kv  # values of a layer's cache
    products = [(h, h + 2 * kv), (h, h), (h, 2 * inner), (inner, h)]
    matmuls = [linear_cost(rows, inputs, outputs, w) for inputs, outputs in products]
    head = linear_cost(batch, h, model.vocabulary, w)
    norms = (2 * model.layers + 1) * rows * h
    # RMS norm: 4 operations a value, softmax 5; turning queries and keys 3, SwiGLU 5, scaling and masking of the
    # scores, two residual sums.
    turned = rows * (h + kv)
    pointwise_flops = 3 * turned + 5 * rows * inner + 2 * scores + 2 * rows * h
    pointwise_bytes = w * (2 * turned + 3 * rows * inner + 4 * written + 2 * 3 * rows * h)
    weights = sum(math.prod(shape) for shape in model.weight_shapes({}).values())
    looked_up = 0 if model.tied else model.vocabulary * h - rows * h  # only the embeddings in use
    layers = model.layers
    moved = weights - looked_up + layers * (appended + (cached if reads_cache else 0)) + batch * model.vocabulary
    return Cost(
        operators=(
            OperatorCost(
                "matmul", layers * sum(m[0] for m in matmuls) + head[0], layers * sum(m[1] for m in matmuls) + head[1]
            ),
            OperatorCost(
                "attention",
                layers * 2 * 2 * scores * size,
                layers * w * (2 * rows * h + cached + 2 * written),
            ),
            OperatorCost(
                "normalisation",
                4 * norms + layers * 5 * scores,
                2 * w * (norms + layers * written),
                transcendentals=layers * scores,
            ),
            OperatorCost(
                "pointwise", layers * pointwise_flops, layers * pointwise_bytes, transcendentals=layers * rows * inner
            ),
            OperatorCost("copy", 0, layers * 2 * w * appended + 2 * w * rows * h + 8 * rows),
        ),
        compulsory_bytes=w * moved + 8 * rows,
    )
