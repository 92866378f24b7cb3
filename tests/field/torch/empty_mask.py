import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", None)

    def forward(self, x):
        if self.mask is None:
            self.mask = torch.ones(8, 8).tril()
        return x @ self.mask


def model():
    return Net()


def inputs(batch_size=4):
    return torch.randn(batch_size, 8)
