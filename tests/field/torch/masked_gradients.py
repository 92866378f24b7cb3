import torch
from torch import nn


class Pruned(nn.Module):
    """Half of the weights are pruned: a hook of the parameter keeps them at zero, which only `backward` calls."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(16, 16)
        mask = torch.arange(16) % 2
        self.net.weight.data.mul_(mask)
        self.net.weight.register_hook(lambda gradient: gradient * mask)

    def forward(self, x):
        return self.net(x)


def model():
    return Pruned()


def loss(output):
    return output.square().mean()


def inputs(batch_size=8):
    return torch.randn(batch_size, 16)
