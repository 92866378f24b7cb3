import torch
from torch import nn


def model():
    """Weights in 8 bits, which torch.compile does not take."""
    return torch.ao.quantization.quantize_dynamic(nn.Sequential(nn.Linear(16, 16), nn.ReLU()), {nn.Linear})


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
