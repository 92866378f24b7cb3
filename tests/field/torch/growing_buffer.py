import torch
from torch import nn


class Decode(nn.Module):
    """Attention to a cache that each call grows by its own keys."""

    def __init__(self):
        super().__init__()
        self.query, self.key = nn.Linear(16, 16), nn.Linear(16, 16)
        self.register_buffer("keys", torch.empty(0, 16), persistent=False)

    def forward(self, x):
        self.keys = torch.cat([self.keys, self.key(x)])
        return (self.query(x) @ self.keys.T).softmax(-1) @ self.keys


def model():
    return Decode()


def inputs(batch_size=1):
    return torch.randn(batch_size, 16)
