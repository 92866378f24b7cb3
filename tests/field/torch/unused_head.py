import torch
from torch import nn


class Detector(nn.Module):
    """Has a head that the loss does not reach, which eager mode's optimizer leaves as it is; weight decay would not."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(16, 16), nn.Linear(16, 4)
        self.auxiliary = nn.Linear(16, 4)

    def forward(self, x):
        y = self.body(x).relu()
        return self.head(y), self.auxiliary(y)


def model():
    return Detector()


def loss(output):
    return output[0].square().mean()


def inputs(batch_size=8):
    return torch.randn(batch_size, 16)
