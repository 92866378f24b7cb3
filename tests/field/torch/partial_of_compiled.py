from functools import partial

import torch
from torch import nn


def scaled(x, factor):
    return x.sin() * factor


class PartialOfCompiled(nn.Module):
    """A functools.partial of a compiled function among the attributes."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(16, 16)
        self.hot = partial(torch.compile(scaled), factor=2.0)

    def forward(self, x):
        return self.hot(self.net(x))


def model():
    return PartialOfCompiled()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
