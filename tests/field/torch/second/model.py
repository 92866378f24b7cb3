import torch
from net import Net


def model():
    return Net()


def inputs(batch_size=8):
    return torch.randn(batch_size, 64)
