import torch
from torch import nn


class NoDetections(nn.Module):
    """As many rows as pass a threshold: none."""

    def forward(self, x):
        return x[x[:, 0] > 1e9] * 2.0


def model():
    return NoDetections()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
