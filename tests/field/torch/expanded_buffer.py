"""A buffer that is an expanded view, so that its values share memory."""

import torch
from torch import nn


class Placed(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("columns", torch.linspace(-1, 1, 8).view(1, 8).expand(8, 8))
        self.conv = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, x):
        return self.conv(torch.cat([x, self.columns.expand(x.size(0), 1, 8, 8)], 1))


def model():
    return Placed()


def inputs(batch_size=2):
    return torch.randn(batch_size, 3, 8, 8)
