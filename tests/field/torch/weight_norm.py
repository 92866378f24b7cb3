import torch
from torch import nn


class WeightNorm(nn.Module):
    """The old weight norm, whose weight is no parameter and cannot be copied once it was computed."""

    def __init__(self):
        super().__init__()
        self.net = nn.utils.weight_norm(nn.Linear(16, 16))

    def forward(self, x):
        return self.net(x).relu()


def model():
    return WeightNorm()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
