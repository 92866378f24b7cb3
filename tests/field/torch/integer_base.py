"""A frozen base of 8-bit weights with trained adapters: the first parameter is of whole numbers."""

import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, size):
        super().__init__()
        base = torch.randint(-127, 128, (size, size), dtype=torch.int8)
        self.base = nn.Parameter(base, requires_grad=False)
        self.down, self.up = nn.Linear(size, 4, bias=False), nn.Linear(4, size, bias=False)

    def forward(self, x):
        return x @ (self.base / 1000).T + self.up(self.down(x))


def model():
    return nn.Sequential(Adapted(32), nn.GELU(), Adapted(32))


def inputs(batch_size=4):
    return torch.randn(batch_size, 32)


def loss(output):
    return (output - 1).square().mean()
