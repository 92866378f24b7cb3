import torch
from torch import nn


class SparseGradients(nn.Module):
    """An embedding with sparse gradients, which Adam does not take."""

    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(50, 16, sparse=True), nn.Linear(16, 4)

    def forward(self, ids):
        return self.out(self.table(ids))


def loss(output):
    return output.square().mean()


def model():
    return SparseGradients()


def inputs(batch_size=4):
    return torch.randint(0, 50, (batch_size, 8))
