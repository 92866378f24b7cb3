"""Llama as `torch.nn` modules with a static cache, operator for operator as in the other frameworks' files."""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from workloads.decode import PAST, STEPS
from workloads.llama import EMBEDDING, HEAD, LAST_NORM, NORM_EPSILON, Llama

Tensors = dict[str, torch.Tensor]


class Block(nn.Module):
    """Causal self-attention over a cache and a gated perceptron, each behind a norm and added to the residual.

    Products that have their input in common are one. The cache holds keys and values as (B, nkv, C, hs).
    """

    def __init__(self, model: Llama, weights: Tensors, prefix: str, batch: int, places: int, fused: bool):
        super().__init__()

        def taken(*names: str) -> nn.Parameter:
            tensors = [weights.pop(f"{prefix}.{name}.weight") for name in names]
            return nn.Parameter(torch.cat(tensors) if len(tensors) > 1 else tensors[0], requires_grad=False)

        self.heads, self.kv_heads, self.head_size, self.fused = model.heads, model.kv_heads, model.head_size, fused
        self.input_norm = taken("input_layernorm")
        self.qkv = taken("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")  # (nh + 2 nkv) * hs rows
        self.output = taken("self_attn.o_proj")
        self.inner_norm = taken("post_attention_layernorm")
        self.gate_up = taken("mlp.gate_proj", "mlp.up_proj")
        self.down = taken("mlp.down_proj")
        shape = (batch, self.kv_heads, places, self.head_size)
        for name in ("keys", "values"):
            self.register_buffer(name, self.qkv.new_zeros(shape))

    def decode(self, x: torch.Tensor, turn: Tensors, place: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """States (B, H) of a token a sequence, which is written to `place` (1,); `mask` (C,) is added to scores."""
        q, k, v = self._projected(x, turn)  # (B, nh, hs), (B, nkv, hs) twice
        self.keys.index_copy_(2, place, k[:, :, None])
        self.values.index_copy_(2, place, v[:, :, None])
        q = q.unflatten(1, (self.kv_heads, -1))  # (B, nkv, nh / nkv, hs): heads that share keys are as rows of one
        if self.fused:
            context = F.scaled_dot_product_attention(q, self.keys, self.values, attn_mask=mask[None, None, None])
        else:
            scores = (q * self.head_size**-0.5) @ self.keys.mT + mask  # (B, nkv, nh / nkv, C)
            context = F.softmax(scores, dim=-1) @ self.values  # (B, nkv, nh / nkv, hs)
        return self._fed_forward(x, context.flatten(1))

    def prefill(self, x: torch.Tensor, turn: Tensors) -> torch.Tensor:
        """States (B, T, H) of a prompt, which fills the cache from its beginning."""
        q, k, v = (y.transpose(1, 2) for y in self._projected(x, turn))  # (B, n, T, hs)
        length = x.size(1)
        self.keys[:, :, :length].copy_(k)
        self.values[:, :, :length].copy_(v)
        if self.fused:
            grouped = self.heads != self.kv_heads
            context = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped)  # (B, nh, T, hs)
        else:
            q = q.reshape(len(x), self.kv_heads, -1, self.head_size)  # (B, nkv, nh / nkv * T, hs)
            scores = ((q * self.head_size**-0.5) @ k.mT).unflatten(2, (-1, length))  # (B, nkv, nh / nkv, T, T)
            future = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)  # (T, T)
            shares = F.softmax(scores.masked_fill(future, -math.inf), dim=-1)
            context = (shares.flatten(2, 3) @ v).reshape(len(x), self.heads, length, self.head_size)
        return self._fed_forward(x, context.transpose(1, 2).flatten(2))

    def _projected(self, x: torch.Tensor, turn: Tensors) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """(..., H) -> turned queries (..., nh, hs) and keys (..., nkv, hs), and values."""
        qkv = F.linear(norm(x, self.input_norm), self.qkv).unflatten(-1, (-1, self.head_size))
        qk, v = qkv.split([self.heads + self.kv_heads, self.kv_heads], dim=-2)
        qk = qk * turn["cosines"] + qk.roll(self.head_size // 2, -1) * turn["sines"]
        q, k = qk.split([self.heads, self.kv_heads], dim=-2)
        return q, k, v

    def _fed_forward(self, x: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        x = x + F.linear(context, self.output)  # (..., H)
        gate, up = F.linear(norm(x, self.inner_norm), self.gate_up).chunk(2, dim=-1)  # (..., I)
        return x + F.linear(F.silu(gate) * up, self.down)


class LlamaModel(nn.Module):
    """A Llama with its cache; weights that it takes leave `weights`, so that few are there twice."""

    def __init__(self, model: Llama, weights: Tensors, batch: int, places: int, fused: bool):
        super().__init__()
        self.embedding = nn.Parameter(weights.pop(EMBEDDING), requires_grad=False)
        self.head = self.embedding if model.tied else nn.Parameter(weights.pop(HEAD), requires_grad=False)
        self.blocks = nn.ModuleList(
            Block(model, weights, f"model.layers.{layer}", batch, places, fused) for layer in range(model.layers)
        )
        self.last_norm = nn.Parameter(weights.pop(LAST_NORM), requires_grad=False)
        for name, table in zip(("cosines", "sines"), model.rotary(np.arange(places)), strict=True):
            self.register_buffer(name, torch.tensor(table).to(self.embedding))  # (C, hs)

    def read(self, input_ids: torch.Tensor) -> torch.Tensor:
        """A prompt (B, T), int64, into the cache -> logits of the next token (B, V)."""
        length = input_ids.size(1)
        turn = {"cosines": self.cosines[:length, None], "sines": self.sines[:length, None]}  # (T, 1, hs)
        x = F.embedding(input_ids, self.embedding)  # (B, T, H)
        for block in self.blocks:
            x = block.prefill(x, turn)
        return F.linear(norm(x[:, -1], self.last_norm), self.head)

    def proceed(self, tokens: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        """`tokens` (B,) and their place (1,), int64 -> logits of the next token (B, V)."""
        slots = torch.arange(self.cosines.size(0), device=place.device)  # (C,)
        mask = torch.zeros_like(self.cosines[:, 0]).masked_fill(slots > place, -math.inf)
        turn = {"cosines": self.cosines.index_select(0, place), "sines": self.sines.index_select(0, place)}  # (1, hs)
        x = F.embedding(tokens, self.embedding)  # (B, H)
        for block in self.blocks:
            x = block.decode(x, turn, place, mask)
        return F.linear(norm(x, self.last_norm), self.head)

    def cached(self, places: torch.Tensor) -> Tensors:
        """What the cache holds at some places (n,): keys and values, (layers, B, nkv, n, hs)."""
        return {
            name: torch.stack([getattr(block, name).index_select(2, places) for block in self.blocks])
            for name in ("keys", "values")
        }


class Prefill(LlamaModel):
    """Reads a prompt."""

    def forward(self, input_ids: torch.Tensor) -> dict[str, torch.Tensor]:
        """`input_ids` (B, T), int64 -> logits of the next token (B, V)."""
        return {"logits": self.read(input_ids)}


class Decode(LlamaModel):
    """Takes one token after the other."""

    def __init__(self, model: Llama, weights: Tensors, batch: int, places: int, fused: bool):
        past = [weights.pop(name) for name in PAST]  # (layers, nkv, C, hs)
        super().__init__(model, weights, batch, places, fused)
        self._first = []  # what calls write over
        for layer, block in enumerate(self.blocks):
            for cache, tensors in zip((block.keys, block.values), past, strict=True):
                cache.copy_(tensors[layer])
                self._first.append(tensors[layer, :, -STEPS:].clone())

    def restore(self) -> None:
        """Put back what the cache held before the first call."""
        caches = [cache for block in self.blocks for cache in (block.keys, block.values)]
        for cache, first in zip(caches, self._first, strict=True):
            cache[:, :, -STEPS:].copy_(first)

    def forward(self, tokens: torch.Tensor, place: torch.Tensor) -> dict[str, torch.Tensor]:
        """`tokens` (B,) and their place (1,), int64 -> logits of the next token (B, V)."""
        return {"logits": self.proceed(tokens, place)}


def norm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return F.rms_norm(x, (x.size(-1),), weight, NORM_EPSILON)
