"""A small network in torch: `eager-vs-graph examples/torch_mlp.py --batch 1,64`."""

import torch
from torch import nn


def model():
    """Return the module to be measured."""
    return nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.GELU(), nn.Linear(1024, 10))


def inputs(batch_size):
    """Return the module's input; each parameter is an option of the command line."""
    return torch.randn(batch_size, 256)
