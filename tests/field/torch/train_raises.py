import torch
from torch import nn


class Modes(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def train(self, mode=True):
        raise NotImplementedError("use set_mode()")

    def forward(self, x):
        return self.layer(x)


def model():
    return Modes()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
