import torch
from torch import nn

criterion = torch.compile(nn.HuberLoss())


def model():
    return nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 16))


def inputs(batch_size=8):
    return torch.randn(batch_size, 16)


@torch.compile
def loss(output):
    return criterion(output, torch.ones_like(output))
