import torch
from torch import nn


class Centered(nn.Module):
    """Subtracts a running mean, which each call binds as a new tensor."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(16, 8)
        self.register_buffer("center", torch.zeros(8))

    def forward(self, x):
        y = self.net(x)
        output = y - self.center
        self.center = 0.5 * self.center + 0.5 * y.detach().mean(0)
        return output


def model():
    return Centered()


def loss(output):
    return (output - 1).square().mean()


def inputs(batch_size=8):
    return torch.randn(batch_size, 16) + 1
