import torch
from torch import nn


class Cache:
    __slots__ = ("keys",)

    def __init__(self, keys):
        self.keys = keys

    def add(self, x):
        self.keys = torch.cat([self.keys, x])


class SlotsCache(nn.Module):
    """A cache of one's own by keyword, its tensors in slots."""

    def forward(self, x, *, cache):
        cache.add(x)
        return x @ cache.keys.T


def model():
    return SlotsCache()


def inputs(batch_size=4):
    return {"x": torch.randn(1, 16), "cache": Cache(torch.randn(batch_size, 16))}
