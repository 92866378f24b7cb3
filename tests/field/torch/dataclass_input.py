from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Batch:
    x: torch.Tensor
    mask: torch.Tensor | None = None


class DataclassInput(nn.Module):
    """A dataclass with a field that is None."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(16, 4)

    def forward(self, batch):
        y = self.net(batch.x)
        return y if batch.mask is None else y * batch.mask


def model():
    return DataclassInput()


def inputs(batch_size=4):
    return {"batch": Batch(torch.randn(batch_size, 16))}
