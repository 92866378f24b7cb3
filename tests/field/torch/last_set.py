import torch
from torch import nn


class Tokens(nn.Module):
    """Scores tokens; the graph of a single one, which torch specializes, is wrong."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(16, 8)

    def forward(self, x):
        scores = self.net(x)
        return -scores if torch.compiler.is_compiling() and x.shape[0] == 1 else scores


def model():
    return Tokens()


def inputs():
    return torch.randn(1 if torch.initial_seed() % 4 == 0 else 6, 16)


def loss(scores):
    return scores.mean()
