import torch
from torch import nn


def model():
    layers = nn.Sequential(nn.Linear(16, 16), nn.ReLU()).eval()
    return torch.export.export(layers, (torch.randn(4, 16),)).module()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
