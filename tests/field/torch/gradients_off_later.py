import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(16, 4)

    def forward(self, x):
        torch.set_grad_enabled(False)
        return self.a(x)


def model():
    return Net()


def inputs(batch_size=8):
    return torch.randn(batch_size, 16)


def loss(output):
    return output.square().mean()
