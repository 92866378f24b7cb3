import torch
from torch import nn


class Bunch(dict):
    """A dict whose keys are attributes, in one line, as many write it."""

    __getattr__ = dict.__getitem__


class Masked(nn.Module):
    """Has such a configuration, and takes such a batch."""

    def __init__(self, config):
        super().__init__()
        self.config = config
        self.dense = nn.Linear(config.width, 8)

    def forward(self, batch):
        return self.dense(batch.x) * batch["inner"].mask * self.config.scale


def model():
    return Masked(Bunch(width=8, scale=0.5, nested=Bunch(depth=1)))


def inputs(batch_size=4):
    return Bunch(x=torch.randn(batch_size, 8), inner=Bunch(mask=torch.ones(batch_size, 1)))


def loss(output):
    return output.square().mean()
