import torch
from torch import nn


class StringsWrong(nn.Module):
    """A string among the outputs, another one in the graph."""

    def forward(self, x):
        return {"x": x + 1.0, "by": "graph" if torch.compiler.is_compiling() else "eager"}


def model():
    return StringsWrong()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
