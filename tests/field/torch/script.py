import torch
from torch import nn


class Plain(nn.Module):
    def forward(self, x):
        return x + 1.0


def model():
    """TorchScript."""
    return torch.jit.script(Plain())


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
