import torch
from torch import nn


class Symmetric(nn.Module):
    def forward(self, weight):
        return weight.triu() + weight.triu(1).T


class Parametrized(nn.Module):
    """Parametrizations, tied weights, spectral norm and a teacher that follows by a moving average."""

    def __init__(self):
        super().__init__()
        self.first, self.tied = nn.Linear(16, 16), nn.Linear(16, 16)
        self.tied.weight = self.first.weight
        self.spectral = nn.utils.parametrizations.spectral_norm(nn.Linear(16, 16))
        self.symmetric = nn.Linear(16, 16)
        nn.utils.parametrize.register_parametrization(self.symmetric, "weight", Symmetric())
        self.teacher = torch.optim.swa_utils.AveragedModel(self.first)

    def forward(self, x):
        return self.symmetric(self.spectral(self.tied(self.first(x)))) + self.teacher(x)


def model():
    return Parametrized()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
