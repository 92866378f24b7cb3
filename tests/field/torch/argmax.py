import torch
from torch import nn


class Argmax(nn.Module):
    """Indices of largest values, ties and NaN among them."""

    def forward(self, x):
        values, places = x.max(dim=1)
        return values, places, x.argmax(), x.argmin(dim=0), x.sort(dim=1, stable=True).indices


def model():
    return Argmax()


def inputs(batch_size=4):
    x = torch.randint(-3, 3, (batch_size, 16)).float()
    x[0, 3] = float("nan")
    return x
