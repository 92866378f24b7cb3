import torch
from torch import nn
from torch.func import jacrev, vmap


class Jacobian(nn.Module):
    """The Jacobian of each row."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 3))

    def forward(self, x):
        return vmap(jacrev(self.net))(x)


def model():
    return Jacobian()


def inputs(batch_size=4):
    return torch.randn(batch_size, 8)
