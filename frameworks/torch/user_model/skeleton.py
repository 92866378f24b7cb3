"""Measured by `make bench WORKLOAD=model.py`, which calls model() once and its result with what inputs() returns."""

import torch
from torch import nn


def model():
    return nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 256))


def inputs(batch_size):
    return torch.randn(batch_size, 256)


# For PASS=training uncomment it, and set dropout to 0. It returns a scalar.
# def loss(output):
#     return output.square().mean()
