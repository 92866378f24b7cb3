"""The passes with a cache: a model's parts as modes call them, on a cache that changes from call to call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch

from frameworks.adapter import Adapter, Step, Unsupported
from frameworks.generating import LARGEST, NEXT, Generation, Growth, with_cache
from frameworks.torch import FRAMEWORK
from frameworks.torch.models import cached_gpt, llama
from frameworks.torch.models.causal import CausalModel, Layers, of_each_sequence
from frameworks.torch.modes import graphs, inference
from measurement.cells import Cell
from workloads.causal import Causal
from workloads.decode import PAST, STEPS
from workloads.spec import Arrays, Workload

MODELS = {"llama": llama.LlamaModel, "qwen3": llama.LlamaModel, "gpt": cached_gpt.GptModel}
InMode = Callable[[torch.nn.Module, Sequence[tuple]], Step]
LENGTH = 2  # the axis of keys and values along which a cache grows


def build(workload: Workload, cell: Cell, weights: dict[str, torch.Tensor]) -> CausalModel:
    """Return the cell's model, which takes the weights out of `weights`. One left over is a RuntimeError.

    The past of a decode pass is in its static cache or, of a cell with a dynamic one, in `past`.
    """
    parameters = dict(cell.parameters)
    places, batch = workload.places(parameters), int(cell.parameter("batch_size"))
    past = [weights.pop(name) for name in PAST] if cell.pass_name == "decode" else None  # (layers, nkv, C, hs)
    model = MODELS[workload.family](
        workload.model.given(parameters), weights, places, cell.parameter("attention") == "fused"
    ).eval()
    if weights:
        raise RuntimeError(f"the model has no place for {', '.join(weights)}")
    if past:
        model.past = of_each_sequence(past, batch)
    if cell.parameter("cache") != "dynamic":
        model.hold(model.past or empty(workload.model, batch, places, next(model.parameters())))
        model.past = None
    return model


def empty(model: Causal, batch: int, places: int, like: torch.Tensor) -> Layers:
    """Return keys and values of so many places, all zero."""
    shape = (batch, model.kv_heads, places, model.head_size)
    return [(like.new_zeros(shape), like.new_zeros(shape)) for _ in range(model.layers)]


class Part(torch.nn.Module):
    """A part of a model as a module: it returns logits or, in generation, the likeliest next token and its logit, (B,).

    Each kind has its own `forward`, for Dynamo counts compilations by function.
    """

    def __init__(self, model: CausalModel, chooses: bool, grows: bool = False):
        super().__init__()
        self.model, self.chooses, self.grows = model, chooses, grows

    def result(self, logits: torch.Tensor) -> dict:
        """Return the outputs of a call from its logits (B, V), by name."""
        if not self.chooses:
            return {"logits": logits}
        largest, tokens = logits.max(-1)
        return {NEXT: tokens, LARGEST: largest}


class Reading(Part):
    """A prompt (B, T) into the static cache or, where that grows, as the cache's `layers`."""

    def forward(self, input_ids: torch.Tensor) -> dict:
        logits, layers = self.model.read(input_ids, fills=not self.grows)
        return {**self.result(logits), "layers": layers} if self.grows else self.result(logits)


class Proceeding(Part):
    """Tokens (B,) at a place (1,) of the static cache."""

    def forward(self, tokens: torch.Tensor, place: torch.Tensor) -> dict:
        return self.result(self.model.proceed(tokens, place))


class Growing(Part):
    """The same on a dynamic cache; the longer one is returned as `layers`."""

    def forward(self, tokens: torch.Tensor, place: torch.Tensor, layers: Layers) -> dict:
        logits, layers = self.model.grow(tokens, place, layers)
        return {**self.result(logits), "layers": layers}


def mark_lengths(layers: Layers) -> None:
    """Make one graph serve all lengths of a cache: Dynamo compiles one for each length that may be fixed."""
    for tensor in (tensor for pair in layers for tensor in pair):
        if tensor.size(LENGTH) < 2:
            raise Unsupported(
                "torch compiles a separate graph for a cache of one position: choose a longer PROMPT or CONTEXT."
            )
        torch._dynamo.mark_dynamic(tensor, LENGTH)


def cached_at(layers: Layers, places: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return keys and values of all layers at some places (n,), (layers, B, nkv, n, hs)."""
    parts = ([part.index_select(LENGTH, places) for part in tensors] for tensors in zip(*layers, strict=True))
    return {name: torch.stack(part) for name, part in zip(("keys", "values"), parts, strict=True)}


def has_dynamic_cache(cell: Cell) -> bool:
    """Return whether the cell's cache grows, by its mode or its own parameter."""
    return (FRAMEWORK.mode(cell.mode).cache or cell.parameter("cache")) == "dynamic"


def static_layers(model: CausalModel) -> Layers:
    """Return the tensors of the static cache."""
    return [(layer.keys, layer.values) for layer in model.cache]


def prepare(adapter: Adapter, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
    """Return the step of the cell's pass in its mode."""
    model = adapter.model(workload, cell, weights)
    sets = [adapter.place(cell, arrays) for arrays in inputs]
    # Those of a generation's tokens or, of a prompt's, those at which the cache is compared.
    places = [adapter.place(cell, {"place": place})[0] for place in workload.places_given(dict(cell.parameters))]
    in_mode = partial(inference.in_mode, adapter.device, cell)
    dynamic = has_dynamic_cache(cell)
    if cell.pass_name == "prefill":
        inner = in_mode(Reading(model, chooses=False), sets)
        call = with_cache(inner.call, lambda _: cached_at(static_layers(model), places[0]))
        return Step(call, sets, inner.capture, program=inner.program)
    growth = None
    if dynamic:
        growth = Growth(mark_lengths) if cell.mode in graphs.BACKENDS else Growth()
    if cell.pass_name == "generate":
        example = (torch.zeros_like(sets[0][0][:, 0]), places[0])
        if growth:
            example += (empty(workload.model, *sets[0][0].shape, next(model.parameters())),)
        kept = torch.clone if FRAMEWORK.mode(cell.mode).cuda_graphs and places[0].is_cuda else lambda tensor: tensor
        return generating(model, in_mode, sets, places, example, growth, kept)
    if not dynamic:
        return decoding(model, in_mode, sets)
    layers = model.past or static_layers(model)
    with torch.inference_mode():  # as in calls: else there is a separate graph
        growth.begin([tuple(part[:, :, : model.places - STEPS].clone() for part in pair) for pair in layers], STEPS)
    inner = in_mode(Growing(model, chooses=False), [(*sets[0], growth.layers)])
    call = with_cache(
        growth.proceeding(inner.call), lambda place: cached_at(growth.layers, torch.cat((place - 1, place)))
    )
    return Step(call, sets, inner.capture, growth.restore, inner.program)


def decoding(model: CausalModel, in_mode: InMode, sets: Sequence[tuple]) -> Step:
    """Return tokens one after the other, at the end of the static cache."""
    parts = [part for pair in static_layers(model) for part in pair]
    firsts = [part[:, :, -STEPS:].clone() for part in parts]  # what calls overwrite

    def restore() -> None:
        for part, first in zip(parts, firsts, strict=True):
            part[:, :, -STEPS:].copy_(first)

    inner = in_mode(Proceeding(model, chooses=False), sets, restore=restore)
    call = with_cache(inner.call, lambda place: cached_at(static_layers(model), torch.cat((place - 1, place))))
    return Step(call, sets, inner.capture, restore, inner.program)


def generating(
    model: CausalModel,
    in_mode: InMode,
    prompts: Sequence[tuple],
    places: Sequence[torch.Tensor],
    example: tuple,
    growth: Growth | None,
    kept: Callable,
) -> Step:
    """Return generations of the model's two parts, each in the mode; `example` are inputs of the second.

    `growth`, if given, is the cache of both. `kept` copies a token that the next call would overwrite.
    """
    proceeds = Growing if growth else Proceeding
    read = in_mode(Reading(model, chooses=True, grows=growth is not None), prompts)
    proceed = in_mode(proceeds(model, chooses=True), [example])
    if growth:
        read.call, proceed.call = growth.reading(read.call), growth.proceeding(proceed.call)
    return Generation(read, proceed, places, partial(torch.stack, dim=1), kept).step(prompts)
