import torch
from torch import nn


def model():
    return nn.Linear(16, 16)


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)


def loss(output, target):
    return (output - target).square().mean()
