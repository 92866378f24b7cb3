"""GPTs (Radford et al. 2019) as nanoGPT trains them: pre-norm blocks, no biases, a tied output layer; no dropout."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workloads.causal import Attend, successors
from workloads.passes import WITH_CACHE
from workloads.reference import cross_entropy, gelu, layer_norm, softmax
from workloads.spec import (
    BYTES_PER_VALUE,
    Arrays,
    Cost,
    OperatorCost,
    Parameter,
    Parameters,
    Weights,
    Workload,
    linear_cost,
)
from workloads.transformer import ATTENTION, cost_of_layers, normal_weights, sequence_of, tolerance

LAYER_NORM_EPSILON = 1e-5
OUTPUTS = ("logits",)
_NORMS = ("ln_1.weight", "ln_2.weight", "ln_f.weight")


@dataclass(frozen=True)
class Gpt(Workload):
    """A GPT of a given size. An inference call reads a prompt and gives the logits of its next token."""

    same_values: ClassVar = ("attention",)

    layers: int = 12
    hidden: int = 768
    heads: int = 12
    vocabulary: int = 50304
    positions: int = 1024

    def weight_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        h = self.hidden
        shapes: dict[str, tuple[int, ...]] = {"wte.weight": (self.vocabulary, h), "wpe.weight": (self.positions, h)}
        for layer in range(self.layers):
            prefix = f"h.{layer}"
            shapes[f"{prefix}.ln_1.weight"] = (h,)
            shapes[f"{prefix}.attn.c_attn.weight"] = (3 * h, h)  # query, key and value
            shapes[f"{prefix}.attn.c_proj.weight"] = (h, h)
            shapes[f"{prefix}.ln_2.weight"] = (h,)
            shapes[f"{prefix}.mlp.c_fc.weight"] = (4 * h, h)
            shapes[f"{prefix}.mlp.c_proj.weight"] = (h, 4 * h)
        return shapes | {"ln_f.weight": (h,)}

    def seeded_weights(self, parameters: Parameters, seed: int) -> Arrays:
        """Draw normal weights of deviation 0.02, smaller where a block adds to the residual (Radford et al. 2019).

        Norms are drawn around 1, since ones would hide a forgotten norm.
        """
        weights = normal_weights(self.weight_shapes(parameters), seed, _NORMS)
        residual = np.float32(1 / math.sqrt(2 * self.layers))
        return {name: draw * residual if "c_proj" in name else draw for name, draw in weights.items()}

    def inputs(self, parameters: Parameters, seed: int) -> Arrays:
        shape = (int(parameters["batch_size"]), int(parameters["seq_len"]))
        return {"input_ids": np.random.default_rng(seed).integers(0, self.vocabulary, shape, dtype=np.int64)}

    def training_inputs(self, parameters: Parameters, seed: int) -> Arrays:
        return successors(parameters, self.vocabulary, seed)

    def states(self, weights: Weights, ids: np.ndarray, positions: np.ndarray, attend: Attend) -> np.ndarray:
        """Map (B, T) token ids at `positions` (T,) -> (B, T, H) after the last norm.

        `attend(layer, q, k, v)` takes a layer's queries, keys and values, (B, nh, T, hs) each, and gives the context.
        """
        batch, length = ids.shape

        def norm(x: np.ndarray, name: str) -> np.ndarray:
            return layer_norm(x, weights[f"{name}.weight"], np.float32(0), LAYER_NORM_EPSILON)

        def heads(y: np.ndarray) -> np.ndarray:  # (B, T, H) -> (B, nh, T, hs)
            return y.reshape(batch, length, self.heads, -1).transpose(0, 2, 1, 3)

        x = weights["wte.weight"][ids] + weights["wpe.weight"][positions]  # (B, T, H)
        for layer in range(self.layers):
            prefix = f"h.{layer}"
            qkv = norm(x, f"{prefix}.ln_1") @ weights[f"{prefix}.attn.c_attn.weight"].T  # (B, T, 3H)
            q, k, v = (heads(qkv[:, :, i * self.hidden : (i + 1) * self.hidden]) for i in range(3))
            context = attend(layer, q, k, v).transpose(0, 2, 1, 3).reshape(batch, length, self.hidden)
            x = x + context @ weights[f"{prefix}.attn.c_proj.weight"].T  # (B, T, H)
            y = gelu(norm(x, f"{prefix}.ln_2") @ weights[f"{prefix}.mlp.c_fc.weight"].T)  # (B, T, 4H)
            x = x + y @ weights[f"{prefix}.mlp.c_proj.weight"].T  # (B, T, H)
        return norm(x, "ln_f")

    def _read(self, weights: Weights, ids: np.ndarray) -> np.ndarray:
        """Map whole sequences (B, T) -> states (B, T, H)."""
        length = ids.shape[1]
        causal = np.triu(np.full((length, length), -np.inf, np.float32), 1)  # (T, T), 0 where attended

        def attend(_: int, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
            scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(self.hidden // self.heads)  # (B, nh, T, T)
            return softmax(scores + causal) @ v

        return self.states(weights, ids, np.arange(length), attend)

    def reference(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> Arrays:
        last = self._read(weights, inputs["input_ids"])[:, -1]  # (B, H)
        return {"logits": last @ weights["wte.weight"].T}  # (B, V)

    def loss(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> np.ndarray:
        """Return the mean cross-entropy of every token's successor."""
        logits = self._read(weights, inputs["input_ids"]) @ weights["wte.weight"].T  # (B, T, V)
        return cross_entropy(logits.reshape(-1, self.vocabulary), inputs["targets"].reshape(-1))

    def cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        """Return the cost of a pass to the last token's logits. Explicit attention also computes masked scores."""
        return self._cost(parameters, BYTES_PER_VALUE[dtype], int(parameters["batch_size"]), fused_attention)

    def training_forward_cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        """Return the cost with logits, and their loss, for every token."""
        rows = int(parameters["batch_size"]) * int(parameters["seq_len"])
        width = BYTES_PER_VALUE[dtype]
        return self._cost(parameters, width, rows, fused_attention).with_loss(rows * self.vocabulary, width)

    def _cost(self, parameters: Parameters, w: int, logit_rows: int, fused: bool) -> Cost:
        batch, length = int(parameters["batch_size"]), int(parameters["seq_len"])
        rows, h = batch * length, self.hidden
        states, attended = rows * h, length * (length + 1) // 2 if fused else length * length
        scores = batch * self.heads * attended  # that are computed
        written = 0 if fused else scores  # that reach memory
        products = [(h, 3 * h), (h, h), (h, 4 * h), (4 * h, h)]
        matmuls = [linear_cost(rows, inputs, outputs, w) for inputs, outputs in products]
        attention = (2 * 2 * batch * attended * h, 2 * w * (2 * states + written))
        norms = 2 * self.layers + 1
        # Layer norm: 6 operations a value without a bias, softmax 5, GELU 5; scaling and masking of the scores, two
        # residual sums.
        pointwise_flops = 5 * 4 * states + 2 * scores + 2 * states
        pointwise_bytes = 2 * w * 4 * states + 4 * w * written + 2 * 3 * w * states
        transposes = 0 if fused else 4 * 2 * w * states * self.layers  # of heads
        copies = transposes + 3 * w * states + 8 * rows  # embedding gathers
        weights = sum(math.prod(shape) for shape in self.weight_shapes(parameters).values())
        return cost_of_layers(
            self.layers,
            matmuls,
            [linear_cost(logit_rows, h, self.vocabulary, w)],
            attention,
            OperatorCost(
                "normalisation",
                norms * 6 * states + self.layers * 5 * scores,
                2 * w * (norms * states + self.layers * written),
                transcendentals=self.layers * scores,
            ),
            OperatorCost(
                "pointwise",
                self.layers * pointwise_flops,
                self.layers * pointwise_bytes,
                transcendentals=self.layers * 4 * states,
            ),
            copies,
            # The output layer reads all token embeddings; of the position embeddings only those in use are read.
            w * (weights - (self.positions - length) * h + logit_rows * self.vocabulary) + 8 * rows,
        )

    def canonical_name(self, checkpoint_name: str) -> str:
        """Return the name without the prefix `transformer.` in nanoGPT's checkpoints."""
        return checkpoint_name.removeprefix("transformer.")


def _gpt(name: str, *, layers: int, hidden: int, heads: int, vocabulary: int, positions: int) -> Gpt:
    parameters = (
        Parameter("batch_size", "batch", 1, "sequences per call"),
        sequence_of(positions),
        ATTENTION,
    )  # fmt: skip
    return Gpt(
        name=name,
        family="gpt",
        implementations=("plain",),
        parameters=parameters,
        tolerance=tolerance(layers),
        passes=("inference", "training", *WITH_CACHE),
        layers=layers,
        hidden=hidden,
        heads=heads,
        vocabulary=vocabulary,
        positions=positions,
    )


WORKLOADS = {
    workload.name: workload
    for workload in (
        # GPT-2's smallest, its vocabulary rounded up to a multiple of 64: 123.6M parameters without the positions.
        _gpt("gpt2-124m", layers=12, hidden=768, heads=12, vocabulary=50304, positions=1024),
        # A character model of Shakespeare: 10.65M parameters without the positions.
        _gpt("gpt-10m", layers=6, hidden=384, heads=6, vocabulary=65, positions=256),
        _gpt("gpt-tiny", layers=2, hidden=64, heads=2, vocabulary=65, positions=64),
    )
}
