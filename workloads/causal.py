"""Language models that read a prompt into a cache, and the methods for their passes.

A model is its own prefill pass.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar, Self

import numpy as np

from workloads import causal_cost, drawn
from workloads.matrices import MATMUL
from workloads.reference import cross_entropy, softmax
from workloads.spec import BYTES_PER_VALUE, Arrays, Cost, Parameter, Parameters, Weights, Workload

COMMON = ("batch_size", "prompt", "attention")  # parameters of every model's prefill pass
OUTPUTS = ("logits", "keys", "values")
PLACES_COMPARED = 8  # positions of a prompt with compared keys and values
CACHE = Parameter(
    "cache", "kv-cache", "static", "key-value cache: memory for all positions (static), or concatenation with each "
    "token (dynamic); decode, generate",
    choices=("static", "dynamic"),
)  # fmt: skip

Attend = Callable[[int, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def prompt_of(positions: int) -> Parameter:
    """Return the prompt-length parameter of a model with this many positions."""
    return Parameter("prompt", "prompt", min(128, positions), "tokens of a prompt (prefill)", maximum=positions)


def successors(parameters: Parameters, vocabulary: int, seed: int) -> Arrays:
    """Return token ids (B, T) and the ids that follow them (B, T), for training a language model."""
    shape = (int(parameters["batch_size"]), int(parameters["seq_len"]) + 1)
    tokens = np.random.default_rng(seed).integers(0, vocabulary, shape, dtype=np.int64)
    return {"input_ids": tokens[:, :-1].copy(), "targets": tokens[:, 1:].copy()}


class Causal(Workload):
    """A model with a cache. A call of prefill fills the cache from a prompt and gives the next token's logits.

    Frameworks build the model from these sizes, and its cost is counted from them; `norm_operations` are a norm's
    operations per value.
    """

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    vocabulary: int
    positions: int
    norm_operations: ClassVar[int]
    same_values: ClassVar = ("attention", "cache", "product")
    product: str = MATMUL  # how products of one row a sequence are written

    def given(self, parameters: Parameters) -> Self:
        """Return the model with these parameters, if any of them changes it."""
        return self

    @property
    @abstractmethod
    def products(self) -> tuple[tuple[int, int], ...]:
        """(in, out) of a block's matrices."""

    @property
    @abstractmethod
    def activation(self) -> tuple[int, int]:
        """Values of the perceptron's activation per token, and the number of inputs of each."""

    @property
    def turned(self) -> int:
        """Values of queries and keys that are rotated, per token."""
        return 0

    @property
    def normed(self) -> int:
        """Values of queries and keys that pass a head norm, per token."""
        return 0

    @property
    def quantized(self) -> tuple[tuple[int, int, bool], ...]:
        """(in, out) of each 8-bit matrix, and whether only a prompt's last token passes through it."""
        return ()

    @abstractmethod
    def states(self, weights: Weights, ids: np.ndarray, positions: np.ndarray, attend: Attend) -> np.ndarray:
        """Map (B, T) token ids at `positions` (T,) -> (B, T, H) after the last norm.

        `attend(layer, q, k, v)` returns the context in the shape of its queries, (B, nkv, nh / nkv, T, hs). Keys and
        values have the cache's shape, (B, nkv, T, hs).
        """

    @abstractmethod
    def logits(self, weights: Weights, states: np.ndarray) -> np.ndarray:
        """Map (B, H) -> (B, V)."""

    @abstractmethod
    def unread(self, rows: int, length: int) -> int:
        """Return how many values of the weights a call does not read, on `rows` tokens in sequences of `length`."""

    @property
    def model(self) -> Self:
        """Return the model itself, as its other passes have it."""
        return self

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads

    def kept_weights(self, parameters: Parameters, seed: int) -> Arrays:
        """Return the norms, drawn around 1 since ones would hide a forgotten norm, and the pool of other weights."""
        rng, shapes = np.random.default_rng(seed), self.weight_shapes(parameters)
        norms = {name: shape for name, shape in shapes.items() if len(shape) == 1}
        kept = {
            name: 1 + rng.standard_normal(shape, dtype=np.float32) * np.float32(0.1) for name, shape in norms.items()
        }
        return kept | {drawn.POOL: drawn.pool({n: s for n, s in shapes.items() if n not in norms}, rng)}

    def weights_from(self, parameters: Parameters, kept: Weights) -> Weights:
        return drawn.Drawn(kept, self.weight_shapes(parameters), {}) if drawn.POOL in kept else kept

    def seeded_weights(self, parameters: Parameters, seed: int) -> Arrays:
        """Draw normal weights of standard deviation 0.02, as Llamas are initialised, and norms around 1."""
        return dict(self.weights_from(parameters, self.kept_weights(parameters, seed)))

    def inputs(self, parameters: Parameters, seed: int) -> Arrays:
        shape = (int(parameters["batch_size"]), int(parameters["prompt"]))
        return {"input_ids": np.random.default_rng(seed).integers(0, self.vocabulary, shape, dtype=np.int64)}

    def places(self, parameters: Parameters) -> int:
        """Return the length of the cache."""
        return int(parameters["prompt"])

    def places_compared(self, parameters: Parameters) -> np.ndarray:
        """Return the compared positions of a prompt."""
        length = int(parameters["prompt"])
        return np.unique(np.linspace(0, length - 1, PLACES_COMPARED).round().astype(np.int64))

    def places_given(self, parameters: Parameters) -> list[np.ndarray]:
        """Return positions that a framework needs in addition to the inputs: the compared ones, (n,)."""
        return [self.places_compared(parameters)]

    def reference(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> Arrays:
        """Return logits (B, V), and keys and values (layers, B, nkv, n, hs) at the compared positions of the cache."""
        ids, places = inputs["input_ids"], self.places_compared(parameters)
        cached: list[tuple[np.ndarray, np.ndarray]] = []

        def attend(layer: int, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
            cached.append((k[:, :, places], v[:, :, places]))
            return self.attended(q, k, v)

        model = self.given(parameters)
        states = model.states(weights, ids, np.arange(ids.shape[1]), attend)
        keys, values = (np.stack(parts) for parts in zip(*cached, strict=True))
        return {"logits": model.logits(weights, states[:, -1]), "keys": keys, "values": values}

    def attended(self, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Return the context of whole sequences, in the queries' shape: each token attends up to itself."""
        *_, length, size = q.shape
        future = np.triu(np.full((length, length), -np.inf, np.float32), 1)  # (T, T), 0 where attended
        keys, values = (y.reshape(-1, self.kv_heads, 1, length, size) for y in (k, v))
        scores = q @ keys.transpose(0, 1, 2, 4, 3) / math.sqrt(self.head_size)  # (B, nkv, nh / nkv, T, T)
        return softmax(scores + future) @ values

    def training_inputs(self, parameters: Parameters, seed: int) -> Arrays:
        return successors(parameters, self.vocabulary, seed)

    def loss(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> np.ndarray:
        """Return the mean cross-entropy of every token's successor."""
        ids = inputs["input_ids"]
        states = self.states(weights, ids, np.arange(ids.shape[1]), lambda _, q, k, v: self.attended(q, k, v))
        logits = self.logits(weights, states)  # (B, T, V)
        return cross_entropy(logits.reshape(-1, self.vocabulary), inputs["targets"].reshape(-1))

    def training_forward_cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        forward = causal_cost.prefill(self, parameters, dtype, fused_attention, every_token=True)
        return forward.with_loss(self.tokens_per_call(parameters) * self.vocabulary, BYTES_PER_VALUE[dtype])

    def cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        return causal_cost.prefill(self.given(parameters), parameters, dtype, fused_attention)

    def tokens_per_call(self, parameters: Parameters) -> int:
        return int(parameters["batch_size"]) * causal_cost.length_of(parameters)


def added(model: Causal) -> tuple[Parameter, ...]:
    """Return a model's parameters in addition to the common ones; its other passes have them too."""
    return tuple(parameter for parameter in model.parameters if parameter.name not in COMMON)
