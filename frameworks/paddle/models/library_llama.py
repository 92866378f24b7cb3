"""Llama as PaddleNLP has it, whose cache grows: keys and values of each layer, (B, n, nkv, hs), concatenated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import paddle
from paddle import nn
from paddlenlp.transformers import LlamaConfig, LlamaForCausalLM
from paddlenlp.transformers.model_utils import no_init_weights

from frameworks.adapter import DTYPES, Step, Unsupported
from frameworks.generating import LARGEST, NEXT, Generation, Growth, with_cache
from frameworks.paddle.inspect import program
from frameworks.paddle.models import calls
from frameworks.paddle.models.plain import load
from frameworks.paddle.modes import graphs
from measurement.cells import Cell
from workloads.decode import PAST, STEPS
from workloads.llama import HEAD
from workloads.spec import Arrays, Workload

Layers = tuple[tuple[paddle.Tensor, paddle.Tensor], ...]
LENGTH = 1  # the axis of keys and values along which a cache grows


class LibraryLlama(nn.Layer):
    """The library's model, called as its users call it; it returns logits or, if it `chooses`, the likeliest token."""

    def __init__(self, model: LlamaForCausalLM, chooses: bool):
        super().__init__()
        self.model, self.chooses = model, chooses

    def forward(self, ids, place=None, layers=None):
        """Map a prompt (B, T), or tokens (B,) at a place (1,) after `layers`, int64 -> outputs and the longer cache.

        Outputs are logits (B, V), or tokens and their logits, (B,) each.
        """
        if place is None:
            output = self.model(ids, use_cache=True, return_dict=True)
        else:
            decoding = {"position_ids": place.unsqueeze(0).expand([ids.shape[0], 1]), "past_key_values": layers}
            output = self.model(ids.unsqueeze(1), use_cache=True, return_dict=True, **decoding)
        logits = output.logits[:, -1]
        results = (paddle.argmax(logits, axis=-1), paddle.max(logits, axis=-1)) if self.chooses else (logits,)
        return *results, output.past_key_values


def cached_at(layers: Layers, places: paddle.Tensor) -> dict[str, paddle.Tensor]:
    """Return keys and values of all layers at some places (n,): (layers, B, nkv, n, hs)."""
    sides = zip(("keys", "values"), zip(*layers, strict=True), strict=True)
    return {
        name: paddle.stack([paddle.gather(t, places, axis=LENGTH).transpose([0, 2, 1, 3]) for t in tensors])
        for name, tensors in sides
    }


def build(workload: Workload, cell: Cell, weights: Arrays) -> LlamaForCausalLM:
    """Return the model. Raises ValueError for a missing or left-over weight, `Unsupported` for another cache."""
    if cell.mode in graphs.PREDICTORS:
        raise Unsupported(
            "paddle.inference needs a cache of fixed shape, and PaddleNLP's Llama has a growing one: choose IMPL=plain."
        )
    if cell.pass_name != "prefill" and cell.parameter("cache") != "dynamic":
        raise Unsupported("PaddleNLP's Llama concatenates its cache: choose KV_CACHE=dynamic.")
    sizes = dict(workload.model.library_config())
    rope = sizes.pop("rope_parameters")
    scaled = {"rope_scaling": rope} if workload.model.scaling else {}
    with no_init_weights():
        model = LlamaForCausalLM(LlamaConfig(**sizes, rope_theta=rope["rope_theta"], **scaled))
    return load(model, weights, _paddlenlp_name, turned=(HEAD,))


def _paddlenlp_name(name: str) -> str | None:
    return None if name in PAST else name.replace("model.", "llama.", 1)


def prepared(workload: Workload, cell: Cell, model: LlamaForCausalLM, weights: Arrays, inputs: Sequence[tuple]) -> Step:
    """Return model's calls in the cell's pass and mode; those with logits also return the cache's content."""
    in_mode, growth = partial(_in_mode, workload, cell), Growth()
    places = [paddle.to_tensor(place) for place in workload.places_given(dict(cell.parameters))]
    if cell.pass_name == "generate":
        token = (paddle.zeros([len(inputs[0][0])], "int64"), places[0])
        read = in_mode(LibraryLlama(model, True), inputs[0])
        proceed = in_mode(LibraryLlama(model, True), (*token, _past(workload, cell, None)))
        read.call, proceed.call = growth.reading(read.call), growth.proceeding(proceed.call)
        return Generation(read, proceed, places, partial(paddle.stack, axis=1)).step(inputs)
    if cell.pass_name == "prefill":
        inner = in_mode(LibraryLlama(model, False), inputs[0])
        call = with_cache(growth.reading(inner.call), lambda _: cached_at(growth.layers, places[0]))
        return Step(call, inputs, inner.capture, program=inner.program)
    growth.begin(_past(workload, cell, weights), STEPS)
    inner = in_mode(LibraryLlama(model, False), (*inputs[0], growth.layers))
    cached = lambda place: cached_at(growth.layers, paddle.concat([place - 1, place]))  # noqa: E731
    call = with_cache(growth.proceeding(inner.call), cached)
    return Step(call, inputs, inner.capture, growth.restore, inner.program)


def _past(workload: Workload, cell: Cell, weights: Arrays | None) -> Layers:
    """Return the cache of a decode pass before its first call; zeros in its shape, after a prompt, without weights."""
    model, batch, dtype = workload.model, int(cell.parameter("batch_size")), DTYPES[cell.dtype]
    if weights is None:
        empty = paddle.zeros([batch, int(cell.parameter("prompt")), model.kv_heads, model.head_size], dtype)
        return tuple((empty, empty) for _ in range(model.layers))
    ends = workload.first_place(dict(cell.parameters))

    def of_each_sequence(name: str, layer: int) -> paddle.Tensor:
        past = np.array(weights[name][layer])[:, :ends].transpose(1, 0, 2)  # (n, nkv, hs)
        return paddle.to_tensor(np.repeat(past[None], batch, 0), dtype)

    return tuple(tuple(of_each_sequence(name, layer) for name in PAST) for layer in range(model.layers))


def _in_mode(workload: Workload, cell: Cell, layer: LibraryLlama, inputs: tuple) -> Step:
    """Return the layer as the mode calls it. One graph serves all lengths of a cache: its signature has no such length.

    Values that depend on such a length are compared by rank alone.
    """
    layer.eval()
    signature = graphs.specification(workload, cell, inputs) if cell.shapes == "dynamic" else None
    if len(inputs) > 1:
        cell = replace(cell, shapes="dynamic")
        spec = paddle.static.InputSpec
        ids, place, layers = inputs
        open_ended = (tuple(spec([t.shape[0], None, *t.shape[2:]], t.dtype) for t in pair) for pair in layers)
        signature = [spec(ids.shape, ids.dtype), spec(place.shape, place.dtype), tuple(open_ended)]
    names = (NEXT, LARGEST, "layers") if layer.chooses else ("logits", "layers")
    if cell.mode == "eager":
        call = calls.without_gradients(layer)
        return Step(calls.named(call, names), [inputs], program=partial(program.executed, call, inputs, cell))
    static, capture, operators = graphs.to_static(layer, cell, signature)
    return Step(calls.named(calls.without_gradients(static), names), [inputs], capture, program=operators)
