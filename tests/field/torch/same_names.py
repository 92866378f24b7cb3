"""Outputs whose names collide where a name is a text; the second of each pair is wrong in the graph."""

import torch
from torch import nn


class Output:
    def __init__(self, scores, hidden):
        self.scores, self._scores = scores, hidden


class Net(nn.Module):
    def forward(self, x):
        wrong = x + 1 if torch.compiler.is_compiling() else x
        return {"1": x, 1: wrong}, {"a": {"b": x}, "a.b": wrong}, Output(x, wrong)


def model():
    return Net()


def inputs(batch_size=4):
    return torch.randn(batch_size, 8)
