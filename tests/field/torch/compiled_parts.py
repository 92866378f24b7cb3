import torch
from torch import nn


class CompiledParts(nn.Module):
    """A submodule under torch.compile, and one that was told to compile itself."""

    def __init__(self):
        super().__init__()
        self.part = torch.compile(nn.Linear(16, 16))
        self.inside = nn.Linear(16, 16)
        self.inside.compile()

    def forward(self, x):
        return self.inside(self.part(x))


def model():
    return CompiledParts()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
