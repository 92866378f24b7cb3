import torch
from torch import nn


class ThirdCall(nn.Module):
    """State that changes the output from the third call on, by little."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x * (1.001 if self.calls > 3 else 1.0)


def model():
    return ThirdCall()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
