import torch
from torch import nn


class ComplexOutput(nn.Module):
    """Complex numbers out; in the graph the imaginary part has the other sign."""

    def forward(self, x):
        y = torch.fft.fft(x.float())
        return y.conj() if torch.compiler.is_compiling() else y


def model():
    return ComplexOutput()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
