import torch
from torch import nn


class Cast(nn.Module):
    """Computes in bf16 whatever the dtype is."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))

    @torch.autocast("cpu", dtype=torch.bfloat16)
    def forward(self, x):
        return self.layers(x)


def model():
    return Cast()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)


def loss(output):
    return output.float().square().mean()
