"""The passes prefill and decode: a model whose cache changes from call to call, and how its content is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch

from frameworks.adapter import Step
from frameworks.generating import LARGEST, NEXT, Generation
from frameworks.torch import llama
from measurement.cells import Cell
from workloads.spec import Workload

PASSES = ("prefill", "decode", "generate")
MODELS = {"prefill": llama.Prefill, "decode": llama.Decode, "generate": llama.LlamaModel}


def build(workload: Workload, cell: Cell, weights: dict[str, torch.Tensor]) -> torch.nn.Module:
    """The model of the cell's pass, which takes the weights out of `weights`. One left over is a RuntimeError."""
    places = workload.places(dict(cell.parameters))
    batch, fused = int(cell.parameter("batch_size")), cell.parameter("attention") == "fused"
    model = MODELS[cell.pass_name](workload.model, weights, batch, places, fused)
    if weights:
        raise RuntimeError(f"the model has no place for {', '.join(weights)}")
    return model.eval()


class Reading(torch.nn.Module):
    """A prompt (B, T) -> the likeliest next token and its logit, (B,)."""

    def __init__(self, model: llama.LlamaModel):
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor) -> dict[str, torch.Tensor]:
        return _chosen(self.model.read(input_ids))


class Proceeding(torch.nn.Module):
    """Tokens (B,) at a place (1,) -> the likeliest next token and its logit, (B,)."""

    def __init__(self, model: llama.LlamaModel):
        super().__init__()
        self.model = model

    def forward(self, tokens: torch.Tensor, place: torch.Tensor) -> dict[str, torch.Tensor]:
        return _chosen(self.model.proceed(tokens, place))


def _chosen(logits: torch.Tensor) -> dict[str, torch.Tensor]:
    largest, tokens = logits.max(-1)
    return {NEXT: tokens, LARGEST: largest}


def step(
    model: llama.LlamaModel,
    in_mode: Callable[[torch.nn.Module, Sequence[tuple]], Step],
    prompts: Sequence[tuple],
    places: Sequence[torch.Tensor],
    overwrites: bool,
) -> Step:
    """Generations of the model's two parts, each `in_mode`; where that overwrites outputs, tokens are copied."""
    with torch.inference_mode():
        batch = prompts[0][0].size(0)
        first = (torch.zeros(batch, dtype=torch.int64, device=places[0].device), places[0])
    read, proceed = in_mode(Reading(model), prompts), in_mode(Proceeding(model), [first])
    kept = torch.clone if overwrites else lambda tensor: tensor
    return Generation(read, proceed, places, partial(torch.stack, dim=1), kept).step(prompts)


def restoring(model: torch.nn.Module) -> Callable[[], None]:
    """What makes the model's cache that before a first call; a prompt writes all of it anew."""
    return getattr(model, "restore", lambda: None)


def compared(model: torch.nn.Module, workload: Workload, cell: Cell) -> Callable[[torch.Tensor], dict]:
    """What tells the cache's content where it is compared, of a call whose last input is given."""
    if cell.pass_name == "decode":
        return lambda place: model.cached(torch.cat((place - 1, place)))
    places = torch.as_tensor(workload.places_compared(dict(cell.parameters)), device=model.embedding.device)
    return lambda _: model.cached(places)
