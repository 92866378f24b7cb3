"""Llama and Qwen3 as `torch.nn` modules with a cache, operator for operator as in the other frameworks' files."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from frameworks.torch.models import causal
from frameworks.torch.models.causal import Tensors
from frameworks.torch.models.matrices import Matrix, product, stored
from workloads.llama import EMBEDDING, HEAD, LAST_NORM, NORM_EPSILON, Llama
from workloads.matrices import NONE


class Block(causal.Block):
    """Attention and a gated perceptron, each behind a norm and added to the residual.

    Products that share their input are one.
    """

    def __init__(self, model: Llama, weights: Tensors, prefix: str, fused: bool):
        super().__init__(model, fused)
        self.form = model.product

        def taken(*names: str, kind: str = model.quant) -> nn.Parameter | Matrix:
            tensors = [weights.pop(f"{prefix}.{name}.weight") for name in names]
            return stored(torch.cat(tensors) if len(tensors) > 1 else tensors[0], kind)

        self.input_norm = taken("input_layernorm", kind=NONE)
        self.qkv = taken("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")  # (nh + 2 nkv) * hs rows
        self.heads_norm = None  # (nh + nkv, hs)
        if model.head_norms:
            sizes = {"self_attn.q_norm": model.heads, "self_attn.k_norm": model.kv_heads}
            norms = [weights.pop(f"{prefix}.{name}.weight").expand(count, -1) for name, count in sizes.items()]
            self.heads_norm = nn.Parameter(torch.cat(norms), requires_grad=False)
        self.output = taken("self_attn.o_proj")
        self.inner_norm = taken("post_attention_layernorm", kind=NONE)
        self.gate_up = taken("mlp.gate_proj", "mlp.up_proj")
        self.down = taken("mlp.down_proj")

    def projected(self, x: torch.Tensor, turn: Tensors) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Map (..., H) -> turned queries (..., nh, hs) and keys (..., nkv, hs), and values."""
        qkv = product(norm(x, self.input_norm), self.qkv, self.form).unflatten(-1, (-1, self.head_size))
        qk, v = qkv.split([self.heads + self.kv_heads, self.kv_heads], dim=-2)
        if self.heads_norm is not None:
            qk = F.rms_norm(qk, (self.head_size,), None, NORM_EPSILON) * self.heads_norm
        qk = qk * turn["cosines"] + qk.roll(self.head_size // 2, -1) * turn["sines"]
        q, k = qk.split([self.heads, self.kv_heads], dim=-2)
        return q, k, v

    def fed_forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        x = x + product(context, self.output, self.form)  # (..., H)
        gate, up = product(norm(x, self.inner_norm), self.gate_up, self.form).chunk(2, dim=-1)  # (..., I)
        return x + product(F.silu(gate) * up, self.down, self.form)


class LlamaModel(causal.CausalModel):
    """A Llama; weights that it takes leave `weights`, so that few are there twice. `made` is called with each block."""

    def __init__(
        self,
        model: Llama,
        weights: Tensors,
        places: int,
        fused: bool,
        made: Callable[[Block], object] = lambda block: None,
    ):
        blocks = []
        for layer in range(model.layers):
            blocks.append(Block(model, weights, f"model.layers.{layer}", fused))
            made(blocks[-1])
        super().__init__(blocks, places)
        self.form = model.product
        self.embedding = nn.Parameter(weights.pop(EMBEDDING), requires_grad=False)
        self.head = self.embedding if model.tied else stored(weights.pop(HEAD), model.quant)
        self.last_norm = nn.Parameter(weights.pop(LAST_NORM), requires_grad=False)
        for name, table in zip(("cosines", "sines"), model.rotary(np.arange(places)), strict=True):
            self.register_buffer(name, torch.tensor(table).to(self.embedding))  # (C, hs)

    def embedded(self, ids: torch.Tensor, places: torch.Tensor | None) -> tuple[torch.Tensor, Tensors]:
        x = F.embedding(ids, self.embedding)  # (..., H)
        if places is None:
            length = ids.size(1)
            return x, {"cosines": self.cosines[:length, None], "sines": self.sines[:length, None]}  # (T, 1, hs)
        return x, {"cosines": self.cosines.index_select(0, places), "sines": self.sines.index_select(0, places)}

    def logits(self, x: torch.Tensor) -> torch.Tensor:
        return product(norm(x, self.last_norm), self.head, self.form)


def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, (x.size(-1),), weight, NORM_EPSILON)
