import torch
from torch import nn


class Physics(nn.Module):
    """A model in double precision, correct by itself, with a constant that no cast finds."""

    def __init__(self):
        super().__init__()
        self.mean = torch.linspace(-1, 1, 32, dtype=torch.float64)
        self.net = nn.Linear(32, 4)

    def forward(self, x):
        return self.net(x - self.mean)


def model():
    return Physics().double()


def inputs(batch_size=4):
    return torch.randn(batch_size, 32, dtype=torch.float64)
