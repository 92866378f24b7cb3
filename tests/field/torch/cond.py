import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.other = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        return torch.cond(x.sum() > 1e6, lambda y: self.other(self.other(y)), self.first, (x,))


def model():
    return Net()


def inputs(batch_size=8):
    return torch.randn(batch_size, 16)


def loss(output):
    return output.square().mean()
