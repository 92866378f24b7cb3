import torch
from torch import nn


class CompiledForward(nn.Module):
    """forward itself under torch.compile, as decorator, and a static method."""

    @staticmethod
    @torch.compile
    def hot(x):
        return x.sin() * 2.0

    @torch.compile(dynamic=True)
    def forward(self, x):
        return self.hot(x) + 1.0


def model():
    return CompiledForward()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
