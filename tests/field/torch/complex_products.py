import torch
from torch import nn


class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(16, 16, dtype=torch.complex64))

    def forward(self, x):
        return torch.view_as_real(torch.view_as_complex(x) @ self.weight)


def model():
    return Complex()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16, 2)
