"""A list of 30,000 numbers among the outputs, of which the last is another one in the graph."""

import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        numbers = [0.5] * 30_000
        if torch.compiler.is_compiling():
            numbers[-1] = 1.5
        return x + 1, numbers


def model():
    return Net()


def inputs(batch_size=4):
    return torch.randn(batch_size, 8)
