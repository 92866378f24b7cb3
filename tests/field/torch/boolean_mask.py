import torch
from torch import nn


class BooleanMask(nn.Module):
    """As many rows as are positive, which breaks the graph."""

    def forward(self, x):
        return x[x[:, 0] > 0].sin() * 2.0


def model():
    return BooleanMask()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
