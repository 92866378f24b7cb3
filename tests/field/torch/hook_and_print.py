import torch
from torch import nn


class HookAndPrint(nn.Module):
    """A forward hook that keeps features, and a logger, as libraries for analysis do."""

    def __init__(self):
        super().__init__()
        self.net, self.features = nn.Linear(16, 16), {}
        self.net.register_forward_hook(self.keep)

    def keep(self, module, given, output):
        self.features["net"] = output

    def forward(self, x):
        return self.net(x).relu()


def model():
    return HookAndPrint()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
