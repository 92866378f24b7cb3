import torch
from torch import nn


def model():
    return nn.ReLU()


def inputs(batch_size=4):
    return torch.randn(batch_size, 8)


def loss(output):
    return output.square().mean()
