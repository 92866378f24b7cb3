"""Overrides of nn.Module's methods that return nothing."""

import torch
from torch import nn


class Net(nn.Sequential):
    def to(self, *args, **kwargs):
        super().to(*args, **kwargs)

    def train(self, mode=True):
        super().train(mode)


def model():
    return Net(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.5))


def inputs(batch_size=4):
    return torch.randn(batch_size, 8)
