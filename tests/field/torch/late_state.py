import torch
from torch import nn


class LateState(nn.Module):
    """State that changes the output after a hundred calls."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * (2.0 if self.calls > 100 else 1.0)


def model():
    return LateState()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
