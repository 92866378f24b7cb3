import torch
from torch import nn


def model():
    """Parameters, buffers and inputs are inference tensors."""
    with torch.inference_mode():
        return nn.Sequential(nn.Linear(16, 16), nn.BatchNorm1d(16))


def inputs(batch_size=4):
    with torch.inference_mode():
        return torch.randn(batch_size, 16)
