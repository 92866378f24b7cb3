import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))


def model():
    return Net()


def inputs(batch_size=4):
    return torch.randn(batch_size, 8)
