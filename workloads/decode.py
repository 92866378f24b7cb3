"""The decode pass of a model with a cache: one token at a time, over the cache."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from workloads import causal_cost, drawn
from workloads.causal import CACHE, Causal, added
from workloads.reference import softmax
from workloads.spec import Arrays, Cost, Parameter, Parameters, PassOf, Weights, Workload, fields_of

STEPS = 4  # consecutive tokens, one per call, then the first again
PAST = ("past.keys", "past.values")
# Powers of two that scale the past's numbers relative to a weight's, to a standard deviation of 1.28. With smaller keys
# attention is so even that a wrong key has little effect.
POWERS = dict.fromkeys(PAST, 6)
SCORES_AT_ONCE = 1 << 25  # of the reference, which would otherwise need gigabytes


@dataclass(frozen=True)
class Decode(PassOf):
    """One call decodes a token of each sequence of a batch, at the end of a cache of `context` positions.

    The cache holds a seeded past, the same for every sequence, as for several continuations of a prompt. Calls take
    given tokens (teacher forcing) at the last four positions in turn. Each writes its keys and values to its position,
    and attends to all up to it. `place` is an input, so one graph covers all four. A static cache has all positions
    from the start. A dynamic cache grows by one per call, and restarts after the fourth.
    """

    model: Causal = field(kw_only=True)

    def first_place(self, parameters: Parameters) -> int:
        """Return the first call's position."""
        return int(parameters["context"]) - STEPS

    def places(self, parameters: Parameters) -> int:
        """Return the length of the cache."""
        return int(parameters["context"])

    def past_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the initial keys and values, (layers, nkv, C, hs); the last places are overwritten."""
        model = self.model
        return dict.fromkeys(PAST, (model.layers, model.kv_heads, int(parameters["context"]), model.head_size))

    def weight_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        return super().weight_shapes(parameters) | self.past_shapes(parameters)

    def weights_from(self, parameters: Parameters, kept: Weights) -> Weights:
        return drawn.Drawn(kept, self.weight_shapes(parameters), POWERS) if drawn.POOL in kept else kept

    def from_checkpoint(
        self, tensors: Callable[[Workload, Parameters], Arrays], parameters: Parameters, seed: int
    ) -> Arrays:
        rng, shapes = np.random.default_rng([seed, 1]), self.past_shapes(parameters)
        past = {
            name: rng.standard_normal(shape, dtype=np.float32)
            * drawn.STANDARD_DEVIATION
            * np.float32(2 ** POWERS[name])
            for name, shape in shapes.items()
        }
        return tensors(self.model, parameters) | past

    def weight_parameters(self, parameters: Parameters) -> Parameters:
        return super().weight_parameters(parameters) | {"context": parameters["context"]}

    def inputs(self, parameters: Parameters, seed: int) -> Arrays:
        """Return token ids (B,) and their position (1,), the first."""
        tokens = np.random.default_rng(seed).integers(
            0, self.model.vocabulary, int(parameters["batch_size"]), dtype=np.int64
        )
        return {"tokens": tokens, "place": np.array([self.first_place(parameters)], np.int64)}

    def sets(self, parameters: Parameters, seed: int) -> list[Arrays]:
        """Return tokens at consecutive positions."""
        return [
            arrays | {"place": arrays["place"] + index} for index, arrays in enumerate(super().sets(parameters, seed))
        ]

    def places_given(self, parameters: Parameters) -> list[np.ndarray]:
        """Return []: the inputs hold all."""
        return []

    def reference(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> Arrays:
        return self.references(parameters, weights, [inputs])[0]

    def references(self, parameters: Parameters, weights: Weights, sets: list[Arrays]) -> list[Arrays]:
        """Return logits (B, V), keys and values (layers, B, nkv, 2, hs) of consecutive calls from the first place on.

        No cache is kept: a token attends to the past and to the tokens given since. All tokens are given, so all calls
        are computed at once, and every weight is read once.
        """
        model, first = self.model.given(parameters), self.first_place(parameters)
        past = [np.asarray(weights[name])[:, :, :first] for name in PAST]  # (layers, nkv, first, hs) each
        future = np.triu(np.full((len(sets),) * 2, -np.inf, np.float32), 1)  # (T, T), 0 where attended
        new: list[tuple[np.ndarray, np.ndarray]] = []  # of each layer, (B, nkv, T, hs)

        def attend(layer: int, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
            new.append((k, v))
            keys, values = (side[layer] for side in past)
            at_once = max(1, SCORES_AT_ONCE // (q[0, ..., 0].size * max(first, 1)))  # sequences
            parts = [slice(start, start + at_once) for start in range(0, len(q), at_once)]
            return np.concatenate([attended(q[part], k[part], v[part], keys, values) for part in parts])

        def attended(q: np.ndarray, k: np.ndarray, v: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
            """Attend from queries (B, nkv, nh / nkv, T, hs) to the past (nkv, first, hs) and to new keys and values."""
            scores = [_by_all(q, keys.swapaxes(-1, -2)), q @ k[:, :, None].swapaxes(-1, -2) + future]
            shares = softmax(np.concatenate(scores, -1) / math.sqrt(model.head_size))  # (B, nkv, nh / nkv, T, C)
            return _by_all(shares[..., :first], values) + shares[..., first:] @ v[:, :, None]

        def written(call: int, which: int) -> np.ndarray:
            """Return keys or values at a call's position and the one before, (layers, B, nkv, 2, hs)."""
            layers = []
            for layer, pair in enumerate(new):
                before = np.broadcast_to(past[which][layer][:, -1:], pair[which][:, :, :1].shape)
                layers.append(np.concatenate([before, pair[which]], 2)[:, :, call : call + 2])
            return np.stack(layers)

        tokens, places = (np.stack([inputs[name] for inputs in sets], -1) for name in ("tokens", "place"))
        states = model.states(weights, tokens, places[0], attend)
        return [
            {"logits": model.logits(weights, states[:, call]), "keys": written(call, 0), "values": written(call, 1)}
            for call in range(len(sets))
        ]

    def cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        return causal_cost.decode(self.model.given(parameters), parameters, dtype, fused_attention)

    def tokens_per_call(self, parameters: Parameters) -> int:
        return int(parameters["batch_size"])

    def tokens_made(self, parameters: Parameters) -> int:
        return int(parameters["batch_size"])


def _by_all(rows: np.ndarray, matrices: np.ndarray) -> np.ndarray:
    """Multiply rows (B, n, ..., m) by matrices (n, m, k), as one product for each of the n."""
    by_matrix = rows.swapaxes(0, 1)
    product = by_matrix.reshape(len(matrices), -1, rows.shape[-1]) @ matrices
    return product.reshape(*by_matrix.shape[:-1], -1).swapaxes(0, 1)


def decode_of(model: Causal) -> Decode:
    """Return the decode pass of `model`."""
    by_name = {parameter.name: parameter for parameter in model.parameters}
    context = Parameter(
        "context", "context", min(1024, model.positions), "positions in the cache; decoded tokens fill the last ones "
        "(decode)",
        minimum=STEPS + 1, maximum=model.positions,
    )  # fmt: skip
    # A kernel for long queries has little work for one token, so the default is `explicit`.
    attention = replace(by_name["attention"], default="explicit")
    parameters = (by_name["batch_size"], context, attention, CACHE, *added(model))
    return Decode(parameters=parameters, input_sets=STEPS, parity_calls=STEPS, **fields_of(model))
