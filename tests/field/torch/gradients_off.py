import torch
from torch import nn

torch.set_grad_enabled(False)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.empty(16, 4))
        self.w.uniform_(-1, 1)

    def forward(self, x):
        return x @ self.w


def model():
    return Net()


def inputs(batch_size=8):
    return torch.randn(batch_size, 16)


def loss(output):
    return output.square().mean()
