"""Vision transformers as `torch.nn` modules, operator for operator as in the other frameworks' files of this name."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from workloads import vit
from workloads.spec import Parameters

# Canonical names of tensors, and the modules below that hold them.
_RENAMED = {
    "encoder.layers.encoder_layer_": "layers.",
    "encoder.pos_embedding": "positions",
    "encoder.ln.": "norm.",
    "self_attention.in_proj_": "qkv.",
    "self_attention.out_proj": "projection",
    "mlp.0": "expand",
    "mlp.3": "contract",
    "heads.head": "head",
}


class Block(nn.Module):
    """Self-attention and a two-layer perceptron, each behind a layer norm and added to the residual."""

    def __init__(self, hidden: int, heads: int, fused: bool):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.ln_1 = nn.LayerNorm(hidden, eps=vit.LAYER_NORM_EPSILON)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.projection = nn.Linear(hidden, hidden)
        self.ln_2 = nn.LayerNorm(hidden, eps=vit.LAYER_NORM_EPSILON)
        self.expand = nn.Linear(hidden, 4 * hidden)
        self.contract = nn.Linear(4 * hidden, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, S, H = x.shape
        q, k, v = (y.view(B, S, self.heads, -1).transpose(1, 2) for y in self.qkv(self.ln_1(x)).split(H, dim=2))
        if self.fused:
            context = F.scaled_dot_product_attention(q, k, v)  # (B, nh, S, hs)
        else:
            scores = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.size(-1)))  # (B, nh, S, S)
            context = F.softmax(scores, dim=-1) @ v  # (B, nh, S, hs)
        x = x + self.projection(context.transpose(1, 2).reshape(B, S, H))  # (B, S, H)
        return x + self.contract(F.gelu(self.expand(self.ln_2(x))))  # (B, S, H), the exact GELU


class ViT(nn.Module):
    """A vision transformer that classifies by its class token."""

    def __init__(self, workload: vit.ViT, parameters: Parameters):
        super().__init__()
        hidden = workload.hidden
        self.channels_last = parameters["layout"] == "nhwc"
        self.class_token = nn.Parameter(torch.empty(1, 1, hidden))
        self.conv_proj = nn.Conv2d(3, hidden, workload.patch, workload.patch)
        self.positions = nn.Parameter(torch.empty(1, workload.length(parameters), hidden))
        fused = parameters.get("attention") == "fused"
        self.layers = nn.ModuleList(Block(hidden, workload.heads, fused) for _ in range(workload.layers))
        self.norm = nn.LayerNorm(hidden, eps=vit.LAYER_NORM_EPSILON)
        self.head = nn.Linear(hidden, workload.classes)

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        """Map `images` (B, 3, I, I), or (B, I, I, 3) where channels are last -> logits (B, classes)."""
        x = images.permute(0, 3, 1, 2) if self.channels_last else images  # (B, 3, I, I), a view
        x = self.conv_proj(x).flatten(2).transpose(1, 2)  # (B, patches, H)
        token = self.class_token.expand(x.size(0), -1, -1)  # (B, 1, H)
        x = torch.cat([token.to(x.dtype), x], dim=1) + self.positions  # (B, S, H)
        for layer in self.layers:
            x = layer(x)
        return {"logits": self.head(self.norm(x)[:, 0])}


def build(workload: vit.ViT, parameters: Parameters, weights: dict[str, torch.Tensor]) -> nn.Module:
    """Return the transformer holding `weights` themselves; copies of the patches' kernel where channels are last.

    A missing or left-over tensor is a RuntimeError.
    """
    with torch.device("meta"):
        model = ViT(workload, parameters)
    model.load_state_dict({own_name(name): tensor for name, tensor in weights.items()}, assign=True)
    return model.to(memory_format=torch.channels_last) if model.channels_last else model


def own_name(canonical: str) -> str:
    """Return the parameter above that holds the tensor of a canonical name."""
    for spelling, replacement in _RENAMED.items():
        canonical = canonical.replace(spelling, replacement)
    return canonical
