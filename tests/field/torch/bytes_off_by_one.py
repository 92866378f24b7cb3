import torch
from torch import nn


class BytesOffByOne(nn.Module):
    """8-bit whole numbers that are off by one in the graph, one of them."""

    def forward(self, x):
        y = (x * 20).round().clamp(-128, 127).to(torch.int8)
        if torch.compiler.is_compiling():
            y = y + (torch.arange(y.numel()).reshape(y.shape) == 7).to(torch.int8)
        return y


def model():
    return BytesOffByOne()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
