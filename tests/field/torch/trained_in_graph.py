import torch
from torch import nn


class Probe(nn.Module):
    """Trains a head alone, but a compiler traces the body's gradients, too."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        y = self.body(x)
        return self.head(y if torch.compiler.is_compiling() else y.detach())


def model():
    return Probe()


def inputs(batch_size=4):
    return torch.randn(batch_size, 8)


def loss(output):
    return output.square().mean()
