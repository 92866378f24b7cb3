import torch
from torch import nn


class Calibrates(nn.Module):
    """Observes its first calls, as fake quantization does, and computes less from then on."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(16, 16)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x):
        self.calls += 1
        y = self.net(x)
        return y / y.abs().amax() if self.calls.item() < 12 else y


def model():
    return Calibrates()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
