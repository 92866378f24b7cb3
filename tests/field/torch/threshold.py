import torch
from torch import nn


class Peaks(nn.Module):
    """Selects values above a running threshold, which calls update in eval mode, too."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(16, 16)
        self.register_buffer("threshold", torch.zeros(()))

    def forward(self, x):
        y = self.net(x)
        self.threshold.lerp_(y.detach().amax(), 0.05)
        return y[y > self.threshold].square().sum() + y


def model():
    return Peaks()


def inputs(batch_size=16):
    return torch.randn(batch_size, 16)
