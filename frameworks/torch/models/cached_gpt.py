"""GPT as `torch.nn` modules with a cache, operator for operator as in the other frameworks' files of this name."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from frameworks.torch.models import causal
from frameworks.torch.models.causal import Tensors
from workloads.cached_gpt import CachedGpt
from workloads.gpt import LAYER_NORM_EPSILON


class Block(causal.Block):
    """Attention and a two-layer perceptron, each behind a layer norm and added to the residual."""

    def __init__(self, model: CachedGpt, weights: Tensors, prefix: str, fused: bool):
        super().__init__(model, fused)

        def taken(name: str) -> nn.Parameter:
            return nn.Parameter(weights.pop(f"{prefix}.{name}.weight"), requires_grad=False)

        self.ln_1, self.qkv, self.output = taken("ln_1"), taken("attn.c_attn"), taken("attn.c_proj")
        self.ln_2, self.expand, self.contract = taken("ln_2"), taken("mlp.c_fc"), taken("mlp.c_proj")

    def projected(self, x: torch.Tensor, turn: Tensors) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        qkv = F.linear(norm(x, self.ln_1), self.qkv).unflatten(-1, (-1, self.head_size))  # (..., 3 nh, hs)
        q, k, v = qkv.chunk(3, dim=-2)
        return q, k, v

    def fed_forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        x = x + F.linear(context, self.output)  # (..., H)
        return x + F.linear(F.gelu(F.linear(norm(x, self.ln_2), self.expand)), self.contract)  # the exact GELU


class GptModel(causal.CausalModel):
    """A GPT with tied embeddings; weights that it takes leave `weights`."""

    def __init__(self, model: CachedGpt, weights: Tensors, places: int, fused: bool):
        super().__init__([Block(model, weights, f"h.{layer}", fused) for layer in range(model.layers)], places)
        self.words, self.positions, self.last_norm = (
            nn.Parameter(weights.pop(f"{name}.weight"), requires_grad=False) for name in ("wte", "wpe", "ln_f")
        )

    def embedded(self, ids: torch.Tensor, places: torch.Tensor | None) -> tuple[torch.Tensor, Tensors]:
        """Return states (..., H) without a rotation: each position has its own embedding."""
        places = torch.arange(ids.size(1), device=ids.device) if places is None else places
        return F.embedding(ids, self.words) + F.embedding(places, self.positions), {}  # (..., H)

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(norm(x, self.last_norm), self.words)


def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, (x.size(-1),), weight, None, LAYER_NORM_EPSILON)
