import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.head = torch.jit.trace(nn.Linear(8, 2), torch.randn(1, 8))

    def forward(self, x):
        return self.head(self.linear(x))


def model():
    return Net()


def inputs(batch_size=4):
    return torch.randn(batch_size, 8)
