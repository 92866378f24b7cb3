import torch
from torch import nn


class ArcFace(nn.Module):
    """Gives a parameter other memory in each call, by its `data`."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(16, 16)
        self.weight = nn.Parameter(torch.randn(10, 16))

    def forward(self, x):
        with torch.no_grad():
            self.weight.data = nn.functional.normalize(self.weight.data)
        return nn.functional.normalize(self.body(x)) @ self.weight.T


def model():
    return ArcFace()


def loss(output):
    return output.square().mean()


def inputs(batch_size=8):
    return torch.randn(batch_size, 16)
