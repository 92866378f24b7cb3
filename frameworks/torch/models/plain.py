"""BERT and small models as `torch.nn` modules, operator for operator as in the other frameworks' plain files."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from frameworks.spellings import BERT, GPT, respelt
from frameworks.torch.models import gpt, lstm, resnet, vit
from workloads import bert, mlp
from workloads.spec import Parameters, Workload


class EncoderLayer(nn.Module):
    """Self-attention and a two-layer perceptron, each followed by a residual sum and a layer norm."""

    def __init__(self, hidden: int, heads: int, intermediate: int, fused: bool):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)
        self.projection = nn.Linear(hidden, hidden)
        self.attention_norm = nn.LayerNorm(hidden, eps=bert.LAYER_NORM_EPSILON)
        self.expand = nn.Linear(hidden, intermediate)
        self.contract = nn.Linear(intermediate, hidden)
        self.output_norm = nn.LayerNorm(hidden, eps=bert.LAYER_NORM_EPSILON)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        B, S, H = x.shape
        q = self.query(x).view(B, S, self.heads, -1).transpose(1, 2)  # (B, nh, S, hs)
        k = self.key(x).view(B, S, self.heads, -1).transpose(1, 2)  # (B, nh, S, hs)
        v = self.value(x).view(B, S, self.heads, -1).transpose(1, 2)  # (B, nh, S, hs)
        if self.fused:
            context = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)  # (B, nh, S, hs)
        else:
            scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.size(-1)))  # (B, nh, S, S)
            if mask is not None:
                scores = scores + mask
            context = F.softmax(scores, dim=-1) @ v  # (B, nh, S, hs)
        context = context.transpose(1, 2).reshape(B, S, H)  # (B, S, H)
        x = self.attention_norm(x + self.projection(context))  # (B, S, H)
        y = F.gelu(self.expand(x))  # (B, S, I), the exact GELU
        return self.output_norm(x + self.contract(y))  # (B, S, H)


class Bert(nn.Module):
    """A BERT encoder with its pooler, for sequences of one segment."""

    def __init__(self, workload: bert.Bert, fused: bool, classifies: bool):
        super().__init__()
        hidden = workload.hidden
        self.word_embeddings = nn.Embedding(workload.vocabulary, hidden)
        self.position_embeddings = nn.Embedding(workload.positions, hidden)
        self.token_type_embeddings = nn.Embedding(workload.token_types, hidden)
        self.embeddings_norm = nn.LayerNorm(hidden, eps=bert.LAYER_NORM_EPSILON)
        self.layers = nn.ModuleList(
            EncoderLayer(hidden, workload.heads, workload.intermediate, fused) for _ in range(workload.layers)
        )
        self.pooler = nn.Linear(hidden, hidden)
        if classifies:
            self.classifier = nn.Linear(hidden, bert.CLASSES)  # for the training pass, which applies it

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        """Map `input_ids` and `attention_mask` (B, S), int64 -> hidden states (B, S, H) and pooled output (B, H)."""
        x = self.word_embeddings(input_ids)  # (B, S, H)
        x = x + self.position_embeddings(torch.arange(input_ids.size(1), device=input_ids.device))  # (S, H) broadcast
        x = x + self.token_type_embeddings(torch.zeros_like(input_ids))  # (B, S, H)
        x = self.embeddings_norm(x)
        mask = None
        if attention_mask is not None:
            mask = (1 - attention_mask[:, None, None, :].to(x.dtype)) * -1e4  # (B, 1, 1, S), 0 where attended
        for layer in self.layers:
            x = layer(x, mask)
        return {"last_hidden_state": x, "pooler_output": torch.tanh(self.pooler(x[:, 0]))}


class Block(nn.Module):
    """One block of the MLP."""

    def __init__(self, width: int):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width, eps=mlp.LAYER_NORM_EPSILON)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.norm(self.linear(x)))  # (B, W)


class Mlp(nn.Module):
    """`depth` blocks of `relu(layer_norm(linear(x)))`."""

    def __init__(self, width: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList(Block(width) for _ in range(depth))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """Map `x` (B, W) -> output (B, W)."""
        for layer in self.layers:
            x = layer(x)  # (B, W)
        return {"output": x}


class Matmul(nn.Module):
    """One matrix product."""

    def __init__(self, size: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(size, size))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """Map `x` (N, N) -> output (N, N)."""
        return {"output": x @ self.weight.T}


class PointwiseChain(nn.Module):
    """`repeat` multiplications of a vector by a parameter."""

    def __init__(self, repeat: int):
        super().__init__()
        self.repeat = repeat
        self.factor = nn.Parameter(torch.empty(1))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """Map `x` (N,) -> output (N,)."""
        for _ in range(self.repeat):
            x = x * self.factor  # (N,)
        return {"output": x}


class FusedCos(nn.Module):
    """`repeat` cosines of a vector."""

    def __init__(self, repeat: int):
        super().__init__()
        self.repeat = repeat

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """Map `x` (N,) -> output (N,)."""
        for _ in range(self.repeat):
            x = torch.cos(x)  # (N,)
        return {"output": x}


class Stream(nn.Module):
    """A vector added to itself."""

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """Map `x` (N,) -> output (N,)."""
        return {"output": x + x}


class OpOverhead(nn.Module):
    """`additions` tiny additions, each on the last one's result."""

    def __init__(self, additions: int):
        super().__init__()
        self.additions = additions
        self.up, self.down = nn.Parameter(torch.empty(1)), nn.Parameter(torch.empty(1))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """Map `x` (N,) -> output (N,)."""
        terms = (self.up, self.down)  # looked up once: a module's attributes are slow
        for index in range(self.additions):
            x = x + terms[index % 2]  # (N,)
        return {"output": x}


def loaded(weights: dict[str, torch.Tensor], spellings: tuple, kind: Callable, *sizes: Any) -> nn.Module:
    """Return the module `kind(*sizes)` holding `weights` themselves, not copies.

    A missing or left-over tensor is a RuntimeError.
    """
    with torch.device("meta"):  # modules without storage: nothing is initialised only to be overwritten
        model = kind(*sizes)
    model.load_state_dict({respelt(name, spellings): tensor for name, tensor in weights.items()}, assign=True)
    return model


# By family: the model of (workload, parameters, weights).
MODELS = {
    "bert": lambda workload, parameters, weights: loaded(
        weights, BERT, Bert, workload, parameters.get("attention") == "fused", "classifier.weight" in weights
    ),
    "gpt": lambda workload, parameters, weights: loaded(
        weights, GPT, gpt.Gpt, workload, parameters.get("attention") == "fused"
    ),
    "resnet": resnet.build,
    "vit": vit.build,
    "lstm": lstm.build,
    "mlp": lambda workload, parameters, weights: loaded(weights, (), Mlp, parameters["width"], parameters["depth"]),
    "matmul": lambda workload, parameters, weights: loaded(weights, (), Matmul, parameters["size"]),
    "pointwise-chain": lambda workload, parameters, weights: loaded(weights, (), PointwiseChain, parameters["repeat"]),
    "fused-cos": lambda workload, parameters, weights: loaded(weights, (), FusedCos, parameters["repeat"]),
    "stream": lambda workload, parameters, weights: loaded(weights, (), Stream),
    "op-overhead": lambda workload, parameters, weights: loaded(weights, (), OpOverhead, parameters["additions"]),
}


def build(workload: Workload, parameters: Parameters, weights: dict[str, torch.Tensor]) -> nn.Module:
    """Return the workload's model holding `weights` themselves, not copies, wherever their order in memory allows it.

    A missing or left-over tensor is a RuntimeError.
    """
    return MODELS[workload.family](workload, parameters, weights).eval()


def blocks(model: nn.Module) -> list[nn.Module]:
    """Return the repeated blocks of a model, in order; none where it has no list of them."""
    return [block for part in model.modules() if isinstance(part, nn.ModuleList) for block in part]
