import random

import torch
from torch import nn


class PythonRandom(nn.Module):
    """Python's own random numbers in a call."""

    def forward(self, x):
        return x * random.uniform(1.0, 2.0)


def model():
    return PythonRandom()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
