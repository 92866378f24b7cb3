"""Llamas (Touvron et al. 2023; Dubey et al. 2024): RMS norms, rotary positions, grouped queries, SwiGLU, no biases.

What stands here is the prefill pass, which reads a prompt; `workloads.decode` and `workloads.generate` make the
others of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from workloads import drawn, llama_cost
from workloads.reference import softmax
from workloads.spec import Arrays, Cost, Parameter, Parameters, Workload
from workloads.transformer import ATTENTION, tolerance

NORM_EPSILON = 1e-5
OUTPUTS = ("logits", "keys", "values")
# Times BERT's rounding: a layer has more products in a row. In bf16 7e-3 was seen of torch, over 16 layers.
ROUNDING_OF_BERT = 2
PLACES_COMPARED = 8  # of a prompt, whose keys and values in the cache are compared
EMBEDDING, HEAD, LAST_NORM = "model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"

Attend = Callable[[int, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Scaling:
    """Llama 3.1's stretching of rotary wavelengths, as `rope_scaling` of type `llama3` has it in a checkpoint.

    Wavelengths above `original / low` are stretched by `factor`, those below `original / high` stay, and those between
    are a mixture.
    """

    factor: float
    low: float = 1.0
    high: float = 4.0
    original: int = 8192

    def of(self, frequencies: np.ndarray) -> np.ndarray:
        """Radians per position, stretched."""
        turns = self.original * frequencies / (2 * math.pi)  # over the original context
        kept = np.clip((turns - self.low) / (self.high - self.low), 0.0, 1.0)
        return kept * frequencies + (1 - kept) * frequencies / self.factor


@dataclass(frozen=True)
class Llama(Workload):
    """A Llama of a given size. A call of prefill fills a cache from a prompt and gives the next token's logits."""

    layers: int = 16
    hidden: int = 2048
    heads: int = 32
    kv_heads: int = 8
    intermediate: int = 8192
    vocabulary: int = 128256
    positions: int = 131072
    theta: float = 500000.0
    scaling: Scaling | None = None
    tied: bool = True  # embeddings: the output layer's weights are the token embeddings

    @property
    def model(self) -> Llama:
        """The model itself, as other passes of it have it."""
        return self

    @property
    def head_size(self) -> int:
        return self.hidden // self.heads

    def weight_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        h, kv = self.hidden, self.kv_heads * self.head_size
        shapes = {EMBEDDING: (self.vocabulary, h)}
        for layer in range(self.layers):
            prefix = f"model.layers.{layer}"
            shapes[f"{prefix}.input_layernorm.weight"] = (h,)
            shapes[f"{prefix}.self_attn.q_proj.weight"] = (h, h)
            shapes[f"{prefix}.self_attn.k_proj.weight"] = (kv, h)
            shapes[f"{prefix}.self_attn.v_proj.weight"] = (kv, h)
            shapes[f"{prefix}.self_attn.o_proj.weight"] = (h, h)
            shapes[f"{prefix}.post_attention_layernorm.weight"] = (h,)
            shapes[f"{prefix}.mlp.gate_proj.weight"] = (self.intermediate, h)
            shapes[f"{prefix}.mlp.up_proj.weight"] = (self.intermediate, h)
            shapes[f"{prefix}.mlp.down_proj.weight"] = (h, self.intermediate)
        shapes[LAST_NORM] = (h,)
        return shapes if self.tied else shapes | {HEAD: (self.vocabulary, h)}

    def kept_weights(self, parameters: Parameters, seed: int) -> Arrays:
        """The norms, drawn around 1 since all ones would hide a forgotten one, and the pool of all other weights."""
        rng, shapes = np.random.default_rng(seed), self.weight_shapes(parameters)
        norms = {name: shape for name, shape in shapes.items() if len(shape) == 1}
        kept = {
            name: 1 + rng.standard_normal(shape, dtype=np.float32) * np.float32(0.1) for name, shape in norms.items()
        }
        return kept | {drawn.POOL: drawn.pool({n: s for n, s in shapes.items() if n not in norms}, rng)}

    def weights_from(self, parameters: Parameters, kept: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        return drawn.Drawn(kept, self.weight_shapes(parameters), {}) if drawn.POOL in kept else kept

    def seeded_weights(self, parameters: Parameters, seed: int) -> Arrays:
        """Normal weights of standard deviation 0.02, as Llamas are initialised, and norms around 1."""
        return dict(self.weights_from(parameters, self.kept_weights(parameters, seed)))

    def inputs(self, parameters: Parameters, seed: int) -> Arrays:
        shape = (int(parameters["batch_size"]), int(parameters["prompt"]))
        return {"input_ids": np.random.default_rng(seed).integers(0, self.vocabulary, shape, dtype=np.int64)}

    def rotary(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Cosines and signed sines (n, head size), float64, of the angles at `positions` (n,) (Su et al. 2021).

        A head `x` is turned by `x * cosines + roll(x, head size / 2) * sines`: pairs are a half apart, as in the
        checkpoints of transformers.
        """
        exponents = np.arange(0, self.head_size, 2) / self.head_size
        frequencies = self.theta**-exponents
        frequencies = self.scaling.of(frequencies) if self.scaling else frequencies
        angles = np.outer(positions, frequencies)  # (n, hs / 2)
        cosines, sines = np.cos(angles), np.sin(angles)
        return np.concatenate([cosines, cosines], -1), np.concatenate([-sines, sines], -1)

    def places(self, parameters: Parameters) -> int:
        """How many the cache has."""
        return int(parameters["prompt"])

    def places_compared(self, parameters: Parameters) -> np.ndarray:
        """Where in the prompt the cache is compared."""
        length = int(parameters["prompt"])
        return np.unique(np.linspace(0, length - 1, PLACES_COMPARED).round().astype(np.int64))

    def states(self, weights: Mapping, ids: np.ndarray, positions: np.ndarray, attend: Attend) -> np.ndarray:
        """(B, T) token ids at `positions` (T,) -> (B, T, H) after the last norm.

        `attend(layer, q, k, v)` takes a layer's turned queries (B, nkv, nh / nkv, T, hs) and keys, and its values
        (B, nkv, T, hs), and gives the context in the queries' shape.
        """
        batch, length = ids.shape
        x = weights[EMBEDDING][ids]  # (B, T, H)
        cosines, sines = (table.astype(x.dtype) for table in self.rotary(positions))  # (T, hs)

        def turned(y: np.ndarray) -> np.ndarray:
            return y * cosines + np.roll(y, self.head_size // 2, -1) * sines

        def heads(y: np.ndarray) -> np.ndarray:  # (B, T, n * hs) -> (B, n, T, hs)
            return y.reshape(batch, length, -1, self.head_size).transpose(0, 2, 1, 3)

        for layer in range(self.layers):
            prefix = f"model.layers.{layer}"
            y = rms_norm(x, weights[f"{prefix}.input_layernorm.weight"])
            q, k, v = (heads(y @ weights[f"{prefix}.self_attn.{name}_proj.weight"].T) for name in "qkv")
            q = turned(q).reshape(batch, self.kv_heads, -1, length, self.head_size)
            context = attend(layer, q, turned(k), v).reshape(batch, self.heads, length, self.head_size)
            context = context.transpose(0, 2, 1, 3).reshape(batch, length, self.hidden)
            x = x + context @ weights[f"{prefix}.self_attn.o_proj.weight"].T  # (B, T, H)
            y = rms_norm(x, weights[f"{prefix}.post_attention_layernorm.weight"])
            y = silu(y @ weights[f"{prefix}.mlp.gate_proj.weight"].T) * (y @ weights[f"{prefix}.mlp.up_proj.weight"].T)
            x = x + y @ weights[f"{prefix}.mlp.down_proj.weight"].T  # (B, T, H)
        return rms_norm(x, weights[LAST_NORM])

    def logits(self, weights: Mapping, states: np.ndarray) -> np.ndarray:
        """(B, H) -> (B, V)."""
        return states @ weights[EMBEDDING if self.tied else HEAD].T

    def reference(self, parameters: Parameters, weights: Mapping, inputs: Arrays) -> Arrays:
        """Logits (B, V), and keys and values (layers, B, nkv, n, hs) at the places of the cache that are compared."""
        ids, places = inputs["input_ids"], self.places_compared(parameters)
        future = np.triu(np.full((ids.shape[1],) * 2, -np.inf, np.float32), 1)  # (T, T), 0 where attended
        cached: list[tuple[np.ndarray, np.ndarray]] = []

        def attend(layer: int, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
            cached.append((k[:, :, places], v[:, :, places]))
            scores = q @ k[:, :, None].swapaxes(-1, -2) / math.sqrt(self.head_size)  # (B, nkv, nh / nkv, T, T)
            return softmax(scores + future) @ v[:, :, None]

        states = self.states(weights, ids, np.arange(ids.shape[1]), attend)
        keys, values = (np.stack(parts) for parts in zip(*cached, strict=True))
        return {"logits": self.logits(weights, states[:, -1]), "keys": keys, "values": values}

    def cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        return llama_cost.prefill(self, parameters, dtype, fused_attention)

    def items_per_call(self, parameters: Parameters) -> int:
        return int(parameters["batch_size"])

    def tokens_per_call(self, parameters: Parameters) -> int:
        return int(parameters["batch_size"]) * int(parameters["prompt"])

    def oracle_parameters(self, parameters: Parameters) -> Parameters:
        # How attention is written does not change what it computes.
        return {name: value for name, value in parameters.items() if name != "attention"}


def rms_norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Root mean square normalisation over the last axis (Zhang and Sennrich 2019)."""
    mean = np.square(x).mean(axis=-1, keepdims=True, dtype=np.float64)
    return x * (1 / np.sqrt(mean + NORM_EPSILON)).astype(x.dtype) * weight


def silu(x: np.ndarray) -> np.ndarray:
    """x * sigmoid(x); the sigmoid from a tangent, which never overflows."""
    return x * (0.5 * (1 + np.tanh(0.5 * x)))


def _llama(name: str, **sizes) -> Llama:
    positions = sizes["positions"]
    parameters = (
        Parameter("batch_size", "batch", 1, "sequences per call"),
        Parameter("prompt", "prompt", min(128, positions), "tokens of a prompt (prefill)", maximum=positions),
        ATTENTION,
    )  # fmt: skip
    return Llama(
        name=name,
        family="llama",
        implementations=("plain",),
        parameters=parameters,
        tolerance=tolerance(sizes["layers"], ROUNDING_OF_BERT),
        passes=("prefill", "decode", "generate"),
        **sizes,
    )


# Sizes as in the checkpoints' config.json.
WORKLOADS = {
    workload.name: workload
    for workload in (
        # meta-llama/Llama-3.2-1B: 1.24G parameters.
        _llama(
            "llama-1b", layers=16, hidden=2048, heads=32, kv_heads=8, intermediate=8192, vocabulary=128256,
            positions=131072, theta=500000.0, scaling=Scaling(32.0), tied=True,
        ),
        # meta-llama/Llama-2-7b: 6.74G parameters, a key and a value for every head.
        _llama(
            "llama-7b", layers=32, hidden=4096, heads=32, kv_heads=32, intermediate=11008, vocabulary=32000,
            positions=4096, theta=10000.0, scaling=None, tied=False,
        ),
        # meta-llama/Llama-3.1-8B: 8.03G parameters.
        _llama(
            "llama-8b", layers=32, hidden=4096, heads=32, kv_heads=8, intermediate=14336, vocabulary=128256,
            positions=131072, theta=500000.0, scaling=Scaling(8.0), tied=False,
        ),
        _llama(
            "llama-tiny", layers=2, hidden=64, heads=4, kv_heads=2, intermediate=128, vocabulary=96,
            positions=2048, theta=500000.0, scaling=Scaling(32.0, original=64), tied=True,
        ),
    )
}  # fmt: skip
