"""The GPTs of `workloads.gpt` with a cache: their prefill pass, from which the other cached passes derive."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from workloads.causal import Attend, Causal, prompt_of
from workloads.gpt import Gpt
from workloads.spec import Parameters, Weights


@dataclass(frozen=True)
class CachedGpt(Causal):
    """A GPT that reads a prompt into a cache; every head has its own keys.

    Its weights are drawn like a Llama's, not like a GPT's for training.
    """

    gpt: Gpt = field(kw_only=True)
    norm_operations: ClassVar[int] = 6

    layers = property(lambda self: self.gpt.layers)
    hidden = property(lambda self: self.gpt.hidden)
    heads = kv_heads = property(lambda self: self.gpt.heads)
    vocabulary = property(lambda self: self.gpt.vocabulary)
    positions = property(lambda self: self.gpt.positions)

    @property
    def products(self) -> tuple[tuple[int, int], ...]:
        h = self.hidden
        return (h, 3 * h), (h, h), (h, 4 * h), (4 * h, h)

    @property
    def activation(self) -> tuple[int, int]:
        return 4 * self.hidden, 1

    def unread(self, rows: int, length: int) -> int:
        """Count the embedding values of unused positions; the output layer reads all token embeddings."""
        return (self.positions - length) * self.hidden

    def weight_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        return self.gpt.weight_shapes(parameters)

    def weight_parameters(self, parameters: Parameters) -> Parameters:
        """Return the parameters that distinguish these weights from those of inference: names and shapes are equal."""
        return {"weights": "cached"}

    def states(self, weights: Weights, ids: np.ndarray, positions: np.ndarray, attend: Attend) -> np.ndarray:
        def by_keys(layer: int, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
            return attend(layer, q[:, :, None], k, v)[:, :, 0]

        return self.gpt.states(weights, ids, positions, by_keys)

    def logits(self, weights: Weights, states: np.ndarray) -> np.ndarray:
        return states @ weights["wte.weight"].T

    def canonical_name(self, checkpoint_name: str) -> str:
        return self.gpt.canonical_name(checkpoint_name)


def cached(gpt: Gpt) -> CachedGpt:
    """Return the GPT with a cache."""
    by_name = {parameter.name: parameter for parameter in gpt.parameters}
    return CachedGpt(
        name=gpt.name,
        family=gpt.family,
        implementations=gpt.implementations,
        parameters=(by_name["batch_size"], prompt_of(gpt.positions), by_name["attention"]),
        tolerance=gpt.tolerance,
        passes=gpt.passes,
        gpt=gpt,
    )
