"""One output is what rounding leaves of a difference, which no precision has in common with another."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return {"scores": x.sigmoid(), "rest": (x * 1.1 - x) - x * 0.1}


def model():
    return Net()


def inputs(batch_size=4):
    return torch.randn(batch_size, 8)
