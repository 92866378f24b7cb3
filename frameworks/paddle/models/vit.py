"""Vision transformers written with `paddle.nn`, operator for operator as in the other files of this name."""

from __future__ import annotations

import math

import paddle
import paddle.nn.functional as F
from paddle import nn

from workloads.images import CHANNELS
from workloads.spec import Parameters
from workloads.vit import LAYER_NORM_EPSILON, ViT

_SPELLINGS = (
    ("encoder.layers.encoder_layer_", "layers."),
    ("encoder.pos_embedding", "positions"),
    ("encoder.ln.", "norm."),
    ("self_attention.in_proj_", "qkv."),
    ("self_attention.out_proj", "projection"),
    ("mlp.0", "expand"),
    ("mlp.3", "contract"),
    ("heads.head", "head"),
)


class Block(nn.Layer):
    """Self-attention and a two-layer perceptron, each behind a layer norm and added to the residual."""

    def __init__(self, hidden: int, heads: int, fused: bool):
        super().__init__()
        self.heads, self.head_size, self.fused = heads, hidden // heads, fused
        self.ln_1 = nn.LayerNorm(hidden, epsilon=LAYER_NORM_EPSILON)
        self.qkv = nn.Linear(hidden, 3 * hidden)
        self.projection = nn.Linear(hidden, hidden)
        self.ln_2 = nn.LayerNorm(hidden, epsilon=LAYER_NORM_EPSILON)
        self.expand = nn.Linear(hidden, 4 * hidden)
        self.contract = nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        split = [0, 0, self.heads, self.head_size]  # 0 keeps a dimension
        q, k, v = self.qkv(self.ln_1(x)).split(3, axis=-1)  # (B, S, H) each
        q, k, v = q.reshape(split), k.reshape(split), v.reshape(split)  # (B, S, nh, hs)
        if self.fused:
            context = F.scaled_dot_product_attention(q, k, v)  # (B, S, nh, hs)
        else:
            q, k, v = q.transpose([0, 2, 1, 3]), k.transpose([0, 2, 1, 3]), v.transpose([0, 2, 1, 3])  # (B, nh, S, hs)
            scores = paddle.matmul(q, k, transpose_y=True) * (1 / math.sqrt(self.head_size))  # (B, nh, S, S)
            context = paddle.matmul(F.softmax(scores), v).transpose([0, 2, 1, 3])  # (B, S, nh, hs)
        x = x + self.projection(context.reshape([0, 0, -1]))  # (B, S, H)
        return x + self.contract(F.gelu(self.expand(self.ln_2(x))))  # (B, S, H), the exact GELU


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
        self.layers = nn.LayerList(Block(hidden, workload.heads, fused) for _ in range(workload.layers))
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


def own_name(canonical: str) -> str:
    """Return the parameter above that holds the tensor of a canonical name."""
    for spelling, replacement in _SPELLINGS:
        canonical = canonical.replace(spelling, replacement)
    return canonical
