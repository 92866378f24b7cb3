import torch
from torch import nn


class Annealed(nn.Module):
    """Counts its calls in a Python attribute, by which a term of the loss grows, as in KL annealing."""

    def __init__(self):
        super().__init__()
        self.body, self.step = nn.Linear(16, 16), 0

    def forward(self, x):
        y = self.body(x)
        weight = min(self.step / 1000, 1.0)
        if self.training:
            self.step += 1
        return y, weight * y.abs().mean()


def model():
    return Annealed()


def loss(output):
    return output[0].square().mean() + output[1]


def inputs(batch_size=8):
    return torch.randn(batch_size, 16)
