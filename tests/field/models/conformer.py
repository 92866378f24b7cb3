"""Two Conformer blocks: half a feed-forward layer, attention, a convolution with a gate, and the other half."""

import torch
from torch import nn
from torch.nn import functional as F


def feed_forward(width):
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))


class Convolution(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.enter = nn.LayerNorm(width), nn.Conv1d(width, 2 * width, 1)
        self.depthwise = nn.Conv1d(width, width, 15, padding=7, groups=width)
        self.batch_norm, self.leave = nn.BatchNorm1d(width), nn.Conv1d(width, width, 1)

    def forward(self, x):
        y = F.glu(self.enter(self.norm(x).transpose(1, 2)), 1)
        return self.leave(F.silu(self.batch_norm(self.depthwise(y)))).transpose(1, 2)


class Conformer(nn.Module):
    def __init__(self, width=144, heads=4):
        super().__init__()
        self.before, self.after = feed_forward(width), feed_forward(width)
        self.norm, self.attention = nn.LayerNorm(width), nn.MultiheadAttention(width, heads, batch_first=True)
        self.convolution, self.last = Convolution(width), nn.LayerNorm(width)

    def forward(self, x):
        x = x + 0.5 * self.before(x)
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        x = x + self.convolution(x)
        return self.last(x + 0.5 * self.after(x))


def model():
    return nn.Sequential(Conformer(), Conformer())


def inputs(batch_size, frames=100):
    return torch.randn(batch_size, frames, 144)
