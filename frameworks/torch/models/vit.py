"""Vision transformers as `torch.nn` modules, operator for operator as in the other frameworks' files of this name."""

from __future__ import annotations

from functools import partial

import torch
from torch import nn

from frameworks.spellings import VIT, respelt
from frameworks.torch.models.gpt import Block
from workloads import vit
from workloads.spec import Parameters


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
        block = partial(Block, hidden, workload.heads, fused, causal=False, bias=True, epsilon=vit.LAYER_NORM_EPSILON)
        self.layers = nn.ModuleList(block() for _ in range(workload.layers))
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
    model.load_state_dict({respelt(name, VIT): tensor for name, tensor in weights.items()}, assign=True)
    return model.to(memory_format=torch.channels_last) if model.channels_last else model
