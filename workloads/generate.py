"""The generate pass of a model with a cache: reads a prompt, then generates the likeliest tokens."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from workloads import causal_cost, drawn
from workloads.causal import CACHE, Causal, added
from workloads.reference import softmax
from workloads.spec import Arrays, Cost, Parameter, Parameters, PassOf, Weights, fields_of

# Dtypes with equal tokens in every framework. In a coarser dtype two logits may differ by less than rounding.
EXACT = ("fp32",)
# About the norm of a row of a seeded matrix: else the token embeddings outweigh the layers, and a token repeats for
# ever.
ROW_NORM = 1.0
# Tokens whose logits the reference keeps at each step. Rounding may choose another one of them, but no other token.
LIKELIEST, LIKELIEST_NAMES = 16, ("likeliest", "logits")


@dataclass(frozen=True)
class Generate(PassOf):
    """One call reads a prompt of each sequence of a batch and generates `tokens` tokens, one after the other.

    The likeliest token wins, the first among equals. A static cache has a slot for every token.
    """

    model: Causal = field(kw_only=True)

    def places(self, parameters: Parameters) -> int:
        """Return the length of the cache."""
        return int(parameters["prompt"]) + int(parameters["tokens"])

    def places_given(self, parameters: Parameters) -> list[np.ndarray]:
        """Return the positions of the tokens fed back, (1,) each: all but the last one generated."""
        return [np.array([place], np.int64) for place in range(int(parameters["prompt"]), self.places(parameters) - 1)]

    def weights_from(self, parameters: Parameters, kept: Weights) -> Weights:
        shapes = self.weight_shapes(parameters)
        norm = float(drawn.STANDARD_DEVIATION) * math.sqrt(self.model.hidden)
        powers = {name: round(math.log2(ROW_NORM / norm)) for name, shape in shapes.items() if len(shape) == 2}
        return drawn.Drawn(kept, shapes, powers) if drawn.POOL in kept else kept

    def inputs(self, parameters: Parameters, seed: int) -> Arrays:
        return self.model.inputs(parameters, seed)

    def reference(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> Arrays:
        """Return tokens (B, N), the logit of each (B, N), and the likeliest tokens with their logits (B, N, K)."""
        model = self.model.given(parameters)
        cached: list[tuple[np.ndarray | None, np.ndarray | None]] = [(None, None)] * model.layers

        def attend(layer: int, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
            pairs = zip(cached[layer], (k, v), strict=True)
            keys, values = (new if old is None else np.concatenate([old, new], 2) for old, new in pairs)
            cached[layer] = keys, values
            length, known = q.shape[-2], keys.shape[2]
            future = np.triu(np.full((length, known), -np.inf), known - length + 1)
            scores = q @ keys[:, :, None].swapaxes(-1, -2) / math.sqrt(model.head_size)
            return softmax(scores + future.astype(q.dtype)) @ values[:, :, None]

        ids, start, steps = inputs["input_ids"], 0, []
        for _ in range(int(parameters["tokens"])):
            states = model.states(weights, ids, np.arange(start, start + ids.shape[1]), attend)
            logits = model.logits(weights, states[:, -1])
            likeliest = np.argpartition(-logits, min(LIKELIEST, logits.shape[-1]) - 1)[:, :LIKELIEST]
            step = {"tokens": logits.argmax(-1), "largest": logits.max(-1), "likeliest": likeliest}
            steps.append(step | {"logits": np.take_along_axis(logits, likeliest, -1)})
            start, ids = start + ids.shape[1], step["tokens"][:, None]
        return {name: np.stack([step[name] for step in steps], 1) for name in steps[0]}

    def comparable(
        self, parameters: Parameters, outputs: Arrays, reference: Arrays, dtype: str
    ) -> tuple[Arrays, Arrays]:
        """Return logits up to the first differing token; those of later steps follow another text, and are NaN in both.

        The logits agree there within rounding. `chosen` holds the reference's logits of both first differing tokens,
        which rounding can exchange only if they agree within twice the tolerance: both logits are rounded. A token that
        is not among the likeliest has 0. Where another cell replaces the reference there is no `chosen`. Dtypes that
        require equal tokens have `same`.
        """
        mine = dict(outputs)
        theirs = {key: values for key, values in reference.items() if key.partition(".")[2] not in LIKELIEST_NAMES}
        for call, differs in self._differing(parameters, outputs, reference).items():
            later = np.cumsum(differs, 1) - differs > 0  # (B, N), beyond the first one that differs
            first, largest = (differs & ~later).reshape(-1), theirs[f"{call}.largest"]
            unlike = later.reshape(-1) & np.isfinite(mine[f"{call}.largest"])
            for arrays in (mine, theirs):
                arrays[f"{call}.largest"] = np.where(unlike, np.nan, arrays[f"{call}.largest"])
                del arrays[f"{call}.tokens"]
            chosen = _logits_of(outputs[f"{call}.tokens"], reference, call)
            if chosen is not None and first.any():
                mine[f"{call}.chosen"], theirs[f"{call}.chosen"] = (
                    np.where(first, logits, np.nan) for logits in ((chosen + largest) / 2, largest)
                )
            if dtype in EXACT:
                mine[f"{call}.same"] = 1.0 - differs.reshape(-1)
                theirs[f"{call}.same"] = np.ones(differs.size)
        return mine, theirs

    def first_differing(self, parameters: Parameters, outputs: Arrays, reference: Arrays) -> int | None:
        differing = self._differing(parameters, outputs, reference).values()
        steps = [int(differs.any(0).argmax()) + 1 for differs in differing if differs.any()]
        return min(steps, default=None)

    def _differing(self, parameters: Parameters, outputs: Arrays, reference: Arrays) -> dict[str, np.ndarray]:
        """Return masks of differing tokens (B, N) by call, without calls with unfit outputs."""
        shape = (int(parameters["batch_size"]), int(parameters["tokens"]))
        fits = {
            key.partition(".")[0]
            for key in reference
            if all(np.size(arrays.get(f"{key.partition('.')[0]}.{name}", ())) == math.prod(shape)
                   for name in ("tokens", "largest") for arrays in (outputs, reference))
        }  # fmt: skip
        return {
            call: (np.asarray(outputs[f"{call}.tokens"]) != np.asarray(reference[f"{call}.tokens"])).reshape(shape)
            for call in sorted(fits)
        }

    def tokens_made(self, parameters: Parameters) -> int:
        return self.tokens_per_call(parameters)

    def cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        """Count the prompt and every token: it reads a whole static cache, or a dynamic cache's tokens."""
        model = self.model.given(parameters)
        whole = causal_cost.prefill(model, parameters, dtype, fused_attention)

        def token(context: int) -> Cost:
            return causal_cost.decode(model, parameters | {"context": context}, dtype, fused_attention)

        places = [int(place[0]) for place in self.places_given(parameters)]
        if parameters.get("cache", "static") == "static":
            return whole.and_then(token(self.places(parameters)), len(places))
        for place in places:
            whole = whole.and_then(token(place + 1), 1)
        return whole

    def tokens_per_call(self, parameters: Parameters) -> int:
        return int(parameters["batch_size"]) * int(parameters["tokens"])


def _logits_of(tokens: np.ndarray, reference: Arrays, call: str) -> np.ndarray | None:
    """Return the reference's logits of tokens (B x N), 0 beyond its likeliest; None if it kept none, or a sample."""
    own = reference[f"{call}.tokens"]
    likeliest, logits = (reference.get(f"{call}.{name}") for name in LIKELIEST_NAMES)
    if likeliest is None or logits is None or likeliest.size % own.size or likeliest.shape != logits.shape:
        return None
    likeliest, logits = likeliest.reshape(own.size, -1), logits.reshape(own.size, -1)
    if not (likeliest == own.reshape(-1, 1)).any(1).all():
        return None
    return np.where(likeliest == np.reshape(tokens, (-1, 1)), logits, 0.0).sum(1)


def generate_of(model: Causal) -> Generate:
    """Return the generate pass of `model`."""
    by_name = {parameter.name: parameter for parameter in model.parameters}
    tokens = Parameter(
        "tokens", "tokens", min(128, model.positions // 2), "tokens that are generated after the prompt (generate)",
        minimum=2, maximum=model.positions // 2,
    )  # fmt: skip
    most = model.positions // 2
    prompt = replace(by_name["prompt"], default=min(128, most), maximum=most)
    attention = replace(by_name["attention"], default="explicit")
    parameters = (by_name["batch_size"], prompt, tokens, attention, CACHE, *added(model))
    return Generate(parameters=parameters, input_sets=2, **fields_of(model))
