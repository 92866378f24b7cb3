import torch
from torch import nn


class CompiledInAList(nn.Module):
    """Compiled functions in a list, in a closure and of another module."""

    def __init__(self):
        super().__init__()
        self.parts = [torch.compile(torch.sin)]

    def forward(self, x):
        return self.parts[0](x)


def model():
    return CompiledInAList()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
