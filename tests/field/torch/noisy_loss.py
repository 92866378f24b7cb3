import torch
from torch import nn


def model():
    return nn.Linear(8, 8)


def inputs(batch_size=4):
    return torch.randn(batch_size, 8)


def loss(output):
    return (output - torch.randn_like(output)).square().mean()
