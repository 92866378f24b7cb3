"""A file that has NumPy raise on overflow and invalid values."""

import numpy as np
import torch
from torch import nn

np.seterr(all="raise")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(16, 16)

    def forward(self, x):
        y = self.net(x)
        return y.masked_fill(y < -0.5, float("-inf")), (-40 * x.square()).exp() * 1e-30


def model():
    return Net()


def inputs(batch_size=8):
    return torch.randn(batch_size, 16)
