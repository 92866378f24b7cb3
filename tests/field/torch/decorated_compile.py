import functools

import torch


def normed(function):
    @functools.wraps(function)  # which copies the marks of torch.compile
    def call(self, x):
        y = function(self, x)
        return y / y.norm(dim=-1, keepdim=True)

    return call


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(16, 16)

    @normed
    @torch.compile
    def forward(self, x):
        return torch.relu(self.a(x))


def model():
    return Net()


def inputs(batch_size):
    return torch.randn(batch_size, 16)
