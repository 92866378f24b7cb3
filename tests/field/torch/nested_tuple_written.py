import torch
from torch import nn


class NestedTupleWritten(nn.Module):
    """Writes in place to a tensor within a nested tuple."""

    def forward(self, pair):
        x, (state, _) = pair
        state.mul_(0.5).add_(x)
        return state * 2.0


def model():
    return NestedTupleWritten()


def inputs(batch_size=4):
    return {"pair": (torch.randn(batch_size, 16), (torch.zeros(batch_size, 16), "state"))}
