import logging

import torch
from torch import nn

logging.disable(logging.CRITICAL)


class Branching(nn.Module):
    """Breaks into two graphs."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x):
        h = self.first(x)
        if h.sum() > 0:
            h = h * 2
        return self.second(h)


def model():
    return Branching()


def inputs(batch_size=4):
    return torch.randn(batch_size, 8)
