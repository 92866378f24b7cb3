"""Cost of a call of a model with a cache: floating-point operations and bytes, weights and cache included."""

from __future__ import annotations

import math
from dataclasses import replace

from workloads.matrices import SUM
from workloads.spec import BYTES_PER_VALUE, Cost, OperatorCost, Parameters, linear_cost
from workloads.transformer import cost_of_layers


def prefill(model, parameters: Parameters, dtype: str, fused: bool, every_token: bool = False) -> Cost:
    """Return the cost of a prompt: reading it, caching its keys and values, and its last token's logits.

    With `every_token`, a sequence is read as in training: no cache, and the logits of each token.
    """
    batch, length = int(parameters["batch_size"]), length_of(parameters)
    attended = length * (length + 1) // 2 if fused else length * length
    return _cost(model, BYTES_PER_VALUE[dtype], batch, length, attended, length, fused, None, every_token)


def length_of(parameters: Parameters) -> int:
    """Return the length of a prompt, or of a training sequence."""
    return int(parameters.get("prompt") or parameters["seq_len"])


def decode(model, parameters: Parameters, dtype: str, fused: bool) -> Cost:
    """Return the cost of one token per sequence, which reads every slot of a static cache, filled or not.

    A dynamic cache is rewritten with the token, at the last of the decoded positions.
    """
    batch, context = int(parameters["batch_size"]), int(parameters["context"])
    return _cost(
        model, BYTES_PER_VALUE[dtype], batch, 1, context, context, fused, str(parameters.get("cache", "static"))
    )


def _cost(
    model,
    w: int,
    batch: int,
    length: int,
    attended: int,
    context: int,
    fused: bool,
    cache: str | None,
    every_token: bool = False,
) -> Cost:
    """Count `length` tokens a sequence, with `attended` pairs of query and key and `context` keys in all.

    `cache` is the kind of cache that keys are read from, or None. With `every_token` each token has logits, and no
    cache is written.
    """
    rows, h, size = batch * length, model.hidden, model.head_size
    kv, (inner, inner_reads) = model.kv_heads * size, model.activation
    scores = batch * model.heads * attended
    stored = 0 if fused else scores  # that reach memory
    cached, appended = 2 * batch * context * kv, 2 * rows * kv  # values of a layer's cache
    written = 0 if every_token else cached if cache == "dynamic" else appended
    logit_rows = rows if every_token else batch
    read = cached if cache else 0
    matmuls = [linear_cost(rows, inputs, outputs, w) for inputs, outputs in model.products]
    norms = (2 * model.layers + 1) * rows * h + model.layers * rows * model.normed
    # Softmax: 5 operations a value; turning queries and keys 3, the activation 5, scaling and masking of the scores,
    # two residual sums.
    turned = rows * model.turned
    pointwise_flops = 3 * turned + 5 * rows * inner + 2 * scores + 2 * rows * h
    pointwise_bytes = w * (2 * turned + (inner_reads + 1) * rows * inner + 4 * stored + 2 * 3 * rows * h)
    weights = sum(math.prod(shape) for shape in model.weight_shapes({}).values())
    layers = model.layers
    moved = weights - model.unread(rows, length) + layers * (written + read) + logit_rows * model.vocabulary
    cost = cost_of_layers(
        layers,
        matmuls,
        [linear_cost(logit_rows, h, model.vocabulary, w)],
        (2 * 2 * scores * size, w * (2 * rows * model.heads * size + cached + 2 * stored)),
        OperatorCost(
            "normalisation",
            model.norm_operations * norms + layers * 5 * scores,
            2 * w * (norms + layers * stored),
            transcendentals=layers * scores,
        ),
        OperatorCost(
            "pointwise", layers * pointwise_flops, layers * pointwise_bytes, transcendentals=layers * rows * inner
        ),
        layers * 2 * w * written + 2 * w * rows * h + 8 * rows,
        w * moved + 8 * rows,
    )
    return _as_given(cost, model, w, rows, batch, decodes=cache is not None)


def _as_given(cost: Cost, model, w: int, rows: int, batch: int, decodes: bool) -> Cost:
    """Return the cost with the model's storage of matrices and form of products."""
    if model.quantized:
        cost = _in_8_bits(cost, model.quantized, w, rows, batch)
    if model.product == SUM:
        of_tokens = model.products * model.layers if decodes else ()  # a prompt's are matrix products
        cost = _summed(cost, (*of_tokens, (model.hidden, model.vocabulary)), w, batch)
    return cost


def _in_8_bits(cost: Cost, matrices: tuple, w: int, rows: int, batch: int) -> Cost:
    """Return the cost with matrices in 8 bits: cast before each product, whose result is multiplied by scales."""
    values = sum(inputs * outputs for inputs, outputs, _ in matrices)
    scales = sum(outputs for _, outputs, _ in matrices)
    results = sum((batch if last else rows) * outputs for _, outputs, last in matrices)
    cost = cost.plus(OperatorCost("copy", 0, (1 + w) * values))
    cost = cost.plus(OperatorCost("pointwise", results, w * (2 * results + scales)))
    return replace(cost, compulsory_bytes=cost.compulsory_bytes - (w - 1) * values + w * scales)


def _summed(cost: Cost, matrices: tuple, w: int, rows: int) -> Cost:
    """Return the cost with products of `rows` rows and these (in, out) matrices as multiplications and sums.

    Products of values are written in float32 and read for the sum. In another dtype operands are cast before, and sums
    after: the matrix product's own reads and writes then move a second time, in float32.
    """
    products = rows * sum(inputs * outputs for inputs, outputs in matrices)
    cost = cost.plus(OperatorCost("pointwise", 0, 2 * 4 * products))
    operands = sum(linear_cost(rows, inputs, outputs, 2 * 4)[1] for inputs, outputs in matrices)
    return cost if w == 4 else cost.plus(OperatorCost("copy", 0, operands))
