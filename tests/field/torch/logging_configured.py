import logging.config

import torch
from torch import nn

# As applications do: all other loggers that exist are disabled by default.
logging.config.dictConfig({"version": 1, "root": {"level": "WARNING"}})


class Detector(nn.Module):
    """Runs one graph, and then code of Python alone."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)

    def forward(self, x):
        kept = sorted(score for score in self.net(x).flatten().tolist() if score > 0.1)
        return {"largest": kept[-1], "sum": sum(kept)}


def model():
    return Detector()


def inputs(batch_size=4):
    return torch.randn(batch_size, 8)
