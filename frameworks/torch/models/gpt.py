"""GPT as `torch.nn` modules, operator for operator as in the other frameworks' files of this name."""

from __future__ import annotations

import math
from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

from workloads import gpt


class Block(nn.Module):
    """Self-attention and a two-layer perceptron, each behind a layer norm and added to the residual; ViT's as well."""

    def __init__(self, hidden: int, heads: int, fused: bool, causal: bool, bias: bool, epsilon: float):
        super().__init__()
        self.heads, self.fused, self.causal = heads, fused, causal
        self.ln_1 = nn.LayerNorm(hidden, eps=epsilon, bias=bias)
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=bias)
        self.projection = nn.Linear(hidden, hidden, bias=bias)
        self.ln_2 = nn.LayerNorm(hidden, eps=epsilon, bias=bias)
        self.expand = nn.Linear(hidden, 4 * hidden, bias=bias)
        self.contract = nn.Linear(4 * hidden, hidden, bias=bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, T, H = x.shape
        q, k, v = (y.view(B, T, self.heads, -1).transpose(1, 2) for y in self.qkv(self.ln_1(x)).split(H, dim=2))
        if self.fused:
            context = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)  # (B, nh, T, hs)
        else:
            scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.size(-1)))  # (B, nh, T, T)
            if self.causal:
                future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)  # (T, T)
                scores = scores.masked_fill(future, -math.inf)
            context = F.softmax(scores, dim=-1) @ v  # (B, nh, T, hs)
        x = x + self.projection(context.transpose(1, 2).reshape(B, T, H))  # (B, T, H)
        return x + self.contract(F.gelu(self.expand(self.ln_2(x))))  # (B, T, H), the exact GELU


class Gpt(nn.Module):
    """A GPT with tied embeddings: its output layer's weights are the token embeddings."""

    def __init__(self, workload: gpt.Gpt, fused: bool):
        super().__init__()
        self.wte = nn.Embedding(workload.vocabulary, workload.hidden)
        self.wpe = nn.Embedding(workload.positions, workload.hidden)
        sizes = workload.hidden, workload.heads
        block = partial(Block, *sizes, fused, causal=True, bias=False, epsilon=gpt.LAYER_NORM_EPSILON)
        self.h = nn.ModuleList(block() for _ in range(workload.layers))
        self.ln_f = nn.LayerNorm(workload.hidden, eps=gpt.LAYER_NORM_EPSILON, bias=False)

    def logits(self, input_ids: torch.Tensor, last: bool) -> torch.Tensor:
        """Map `input_ids` (B, T), int64 -> logits (B, T, V), or (B, V) of the last position."""
        positions = torch.arange(input_ids.size(1), device=input_ids.device)  # (T,)
        x = self.wte(input_ids) + self.wpe(positions)  # (B, T, H)
        for block in self.h:
            x = block(x)
        x = self.ln_f(x)
        return F.linear(x[:, -1] if last else x, self.wte.weight)

    def forward(self, input_ids: torch.Tensor) -> dict[str, torch.Tensor]:
        """Map `input_ids` (B, T), int64 -> logits of the next token (B, V)."""
        return {"logits": self.logits(input_ids, last=True)}
