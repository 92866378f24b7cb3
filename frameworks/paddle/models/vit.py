"""Vision transformers written with `paddle.nn`, operator for operator as in the other files of this name."""

from __future__ import annotations

from functools import partial

import paddle
from paddle import nn

from frameworks.paddle.models.gpt import Block
from workloads.images import CHANNELS
from workloads.spec import Parameters
from workloads.vit import LAYER_NORM_EPSILON, ViT


class ViTModel(nn.Layer):
    """A vision transformer that classifies by its class token."""

    def __init__(self, workload: ViT, parameters: Parameters, fused: bool):
        super().__init__()
        hidden = workload.hidden
        self.channels_last = parameters["layout"] == "nhwc"
        self.class_token = self.create_parameter([1, 1, hidden])
        data_format = str(parameters["layout"]).upper()
        self.conv_proj = nn.Conv2D(CHANNELS, hidden, workload.patch, workload.patch, data_format=data_format)
        self.positions = self.create_parameter([1, workload.length(parameters), hidden])
        block = partial(Block, hidden, workload.heads, fused, causal=False, bias=True, epsilon=LAYER_NORM_EPSILON)
        self.layers = nn.LayerList(block() for _ in range(workload.layers))
        self.norm = nn.LayerNorm(hidden, epsilon=LAYER_NORM_EPSILON)
        self.head = nn.Linear(hidden, workload.classes)

    def forward(self, images):
        """Map `images` (B, 3, I, I), or (B, I, I, 3) where channels are last -> logits (B, classes)."""
        x = self.conv_proj(images)
        x = x.flatten(1, 2) if self.channels_last else x.flatten(2).transpose([0, 2, 1])  # (B, patches, H)
        token = self.class_token.astype(x.dtype).expand([images.shape[0], -1, -1])  # (B, 1, H)
        x = paddle.concat([token, x], axis=1) + self.positions  # (B, S, H)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)[:, 0])
