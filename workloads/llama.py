"""Llamas (Touvron et al. 2023; Dubey et al. 2024): RMS norms, rotary positions, grouped queries, SwiGLU, no biases.

Qwen3 (2025) also normalises each head of queries and keys, and sets the head size separately. This module has the
prefill pass, which reads a prompt; `workloads.decode` and `workloads.generate` derive the others from it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from workloads.causal import Attend, Causal, prompt_of
from workloads.matrices import MATMUL, NONE, PRODUCT, QUANT, restored
from workloads.passes import WITH_CACHE
from workloads.reference import concatenated, sigmoid
from workloads.spec import Parameter, Parameters, Weights
from workloads.transformer import ATTENTION, sequence_of, tolerance

NORM_EPSILON = 1e-5
# A multiple of BERT's: a layer has more products in a row. Torch's bf16 error is 7e-3 over 16 layers.
ROUNDING_OF_BERT, BERT_INTERMEDIATE = 2, 3072
EMBEDDING, HEAD, LAST_NORM = "model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"
STATES = Parameter(
    "states", "states", "fp32", "dtype of a Llama's parameters, gradients and AdamW's moments (training)",
    choices=("fp32", "bf16"), implementations=("plain",),
)  # fmt: skip


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

    def scaled(self, frequencies: np.ndarray) -> np.ndarray:
        """Return radians per position, stretched."""
        turns = self.original * frequencies / (2 * math.pi)  # over the original context
        kept = np.clip((turns - self.low) / (self.high - self.low), 0.0, 1.0)
        return kept * frequencies + (1 - kept) * frequencies / self.factor


@dataclass(frozen=True)
class Llama(Causal):
    """A Llama of a given size."""

    norm_operations: ClassVar[int] = 4

    layers: int = 16
    hidden: int = 2048
    heads: int = 32
    kv_heads: int = 8
    intermediate: int = 8192
    vocabulary: int = 128256
    positions: int = 131072
    theta: float = 500000.0
    scaling: Scaling | None = None
    size: int = 0  # of a head; 0: hidden over heads
    head_norms: bool = False  # of queries and keys, before rotation
    tied: bool = True  # embeddings: the output layer's weights are the token embeddings
    quant: str = NONE  # how matrices of linear layers are stored; embeddings, and an output layer tied to them, are not
    product: str = MATMUL

    def given(self, parameters: Parameters) -> Self:
        quant, product = (str(parameters.get(axis.name, axis.default)) for axis in (QUANT, PRODUCT))
        return replace(self, quant=quant, product=product)

    @property
    def quantized(self) -> tuple[tuple[int, int, bool], ...]:
        if self.quant == NONE:
            return ()
        head = () if self.tied else ((self.hidden, self.vocabulary, True),)
        return tuple((*sizes, False) for sizes in self.products) * self.layers + head

    @property
    def products(self) -> tuple[tuple[int, int], ...]:
        h, q, kv = self.hidden, self.heads * self.head_size, self.kv_heads * self.head_size
        return (h, q + 2 * kv), (q, h), (h, 2 * self.intermediate), (self.intermediate, h)

    @property
    def head_size(self) -> int:
        return self.size or super().head_size

    @property
    def turned(self) -> int:
        return (self.heads + self.kv_heads) * self.head_size

    @property
    def normed(self) -> int:
        return self.turned if self.head_norms else 0

    @property
    def activation(self) -> tuple[int, int]:
        return self.intermediate, 2

    @property
    def training_parameters(self) -> tuple[Parameter, ...]:
        (batch,) = (parameter for parameter in self.parameters if parameter.name == "batch_size")
        return batch, sequence_of(self.positions), ATTENTION, STATES

    def library_config(self) -> dict[str, object]:
        """Return the configuration in transformers' names; there is no dropout."""
        rope: dict[str, object] = {"rope_type": "default", "rope_theta": self.theta}
        if self.scaling:
            rope |= {
                "rope_type": "llama3", "factor": self.scaling.factor, "low_freq_factor": self.scaling.low,
                "high_freq_factor": self.scaling.high, "original_max_position_embeddings": self.scaling.original,
            }  # fmt: skip
        return {
            "vocab_size": self.vocabulary,
            "hidden_size": self.hidden,
            "intermediate_size": self.intermediate,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "max_position_embeddings": self.positions,
            "rms_norm_eps": NORM_EPSILON,
            "tie_word_embeddings": self.tied,
            "rope_parameters": rope,
        } | ({"head_dim": self.size} if self.size else {})

    def unread(self, rows: int, length: int) -> int:
        """Count embeddings that are not in use, unless the output layer reads them."""
        return 0 if self.tied else (self.vocabulary - rows) * self.hidden

    def weight_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        h, query, kv = self.hidden, self.heads * self.head_size, self.kv_heads * self.head_size
        shapes: dict[str, tuple[int, ...]] = {EMBEDDING: (self.vocabulary, h)}
        for layer in range(self.layers):
            prefix = f"model.layers.{layer}"
            shapes[f"{prefix}.input_layernorm.weight"] = (h,)
            shapes[f"{prefix}.self_attn.q_proj.weight"] = (query, h)
            shapes[f"{prefix}.self_attn.k_proj.weight"] = (kv, h)
            shapes[f"{prefix}.self_attn.v_proj.weight"] = (kv, h)
            shapes[f"{prefix}.self_attn.o_proj.weight"] = (h, query)
            if self.head_norms:
                shapes |= dict.fromkeys((f"{prefix}.self_attn.{n}_norm.weight" for n in "qk"), (self.head_size,))
            shapes[f"{prefix}.post_attention_layernorm.weight"] = (h,)
            shapes[f"{prefix}.mlp.gate_proj.weight"] = (self.intermediate, h)
            shapes[f"{prefix}.mlp.up_proj.weight"] = (self.intermediate, h)
            shapes[f"{prefix}.mlp.down_proj.weight"] = (h, self.intermediate)
        shapes[LAST_NORM] = (h,)
        return shapes if self.tied else shapes | {HEAD: (self.vocabulary, h)}

    def rotary(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return cosines and signed sines (n, hs), float64, of the angles at `positions` (n,) (Su et al. 2021).

        A head `x` is rotated by `x * cosines + roll(x, head size / 2) * sines`: pairs are half a head apart, as in
        transformers' checkpoints.
        """
        exponents = np.arange(0, self.head_size, 2) / self.head_size
        frequencies = self.theta**-exponents
        frequencies = self.scaling.scaled(frequencies) if self.scaling else frequencies
        angles = np.outer(positions, frequencies)  # (n, hs / 2)
        cosines, sines = np.cos(angles), np.sin(angles)
        return np.concatenate([cosines, cosines], -1), np.concatenate([-sines, sines], -1)

    def states(self, weights: Weights, ids: np.ndarray, positions: np.ndarray, attend: Attend) -> np.ndarray:
        batch, length = ids.shape
        x = weights[EMBEDDING][ids]  # (B, T, H)
        cosines, sines = (table.astype(x.dtype) for table in self.rotary(positions))  # (T, hs)

        def linear(name: str, y: np.ndarray) -> np.ndarray:
            return y @ restored(weights[f"{name}_proj.weight"], self.quant).T

        def turned(y: np.ndarray) -> np.ndarray:
            half = self.head_size // 2
            return y * cosines + concatenated([y[..., half:], y[..., :half]], -1) * sines

        def heads(y: np.ndarray) -> np.ndarray:  # (B, T, n * hs) -> (B, n, T, hs)
            return y.reshape(batch, length, -1, self.head_size).transpose(0, 2, 1, 3)

        for layer in range(self.layers):
            prefix = f"model.layers.{layer}"
            y = rms_norm(x, weights[f"{prefix}.input_layernorm.weight"])
            q, k, v = (heads(linear(f"{prefix}.self_attn.{name}", y)) for name in "qkv")
            if self.head_norms:
                q, k = (
                    rms_norm(y, weights[f"{prefix}.self_attn.{name}_norm.weight"]) for name, y in (("q", q), ("k", k))
                )
            q = turned(q).reshape(batch, self.kv_heads, -1, length, self.head_size)
            context = attend(layer, q, turned(k), v).reshape(batch, self.heads, length, self.head_size)
            joined = context.transpose(0, 2, 1, 3).reshape(batch, length, -1)
            x = x + linear(f"{prefix}.self_attn.o", joined)  # (B, T, H)
            y = rms_norm(x, weights[f"{prefix}.post_attention_layernorm.weight"])
            y = silu(linear(f"{prefix}.mlp.gate", y)) * linear(f"{prefix}.mlp.up", y)
            x = x + linear(f"{prefix}.mlp.down", y)  # (B, T, H)
        return rms_norm(x, weights[LAST_NORM])

    def logits(self, weights: Weights, states: np.ndarray) -> np.ndarray:
        return states @ (weights[EMBEDDING] if self.tied else restored(weights[HEAD], self.quant)).T


def rms_norm(x: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Normalise by the root mean square over the last axis (Zhang and Sennrich 2019)."""
    mean = np.square(x).mean(axis=-1, keepdims=True, dtype=np.float64)
    return x * (1 / np.sqrt(mean + NORM_EPSILON)).astype(x.dtype) * weight


def silu(x: np.ndarray) -> np.ndarray:
    return x * sigmoid(x)


def rounding(layers: int, intermediate: int) -> dict[str, float]:
    """Return the error allowed by dtype.

    A float32 sum rounded after each of its terms has an error that grows with the root of their number. XLA and Paddle
    seem to do so in products of one row on a CPU: docs/methodology.md, "Prefill, decode and generate". In coarser
    dtypes the rounding of operands outweighs that.
    """
    allowed = tolerance(layers, ROUNDING_OF_BERT)
    return allowed | {"fp32": allowed["fp32"] * max(1.0, math.sqrt(intermediate / BERT_INTERMEDIATE))}


def _llama(name: str, family: str = "llama", **sizes) -> Llama:
    positions = sizes["positions"]
    parameters = (
        Parameter("batch_size", "batch", 1, "sequences per call"),
        prompt_of(positions),
        ATTENTION,
        QUANT,
        PRODUCT,
    )
    return Llama(
        name=name,
        family=family,
        implementations=("plain", "library"),
        parameters=parameters,
        tolerance=rounding(sizes["layers"], sizes["intermediate"]),
        passes=WITH_CACHE if sizes.get("head_norms") else ("training", *WITH_CACHE),
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
        # Qwen/Qwen3-0.6B: 0.60G parameters.
        _llama(
            "qwen3-0.6b", "qwen3", layers=28, hidden=1024, heads=16, kv_heads=8, size=128,
            intermediate=3072, vocabulary=151936, positions=40960, theta=1000000.0, head_norms=True,
        ),
        _llama(
            "qwen3-tiny", "qwen3", layers=2, hidden=64, heads=4, kv_heads=2, size=32,
            intermediate=128, vocabulary=96, positions=2048, theta=1000000.0, head_norms=True,
        ),
    )
}  # fmt: skip
