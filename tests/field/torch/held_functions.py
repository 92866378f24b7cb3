import functools
import weakref

import torch


class Reader(torch.nn.Module):
    def __init__(self, owner):
        super().__init__()
        self.owner = weakref.ref(owner)

    def forward(self, x):
        return self.owner().down(x)


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.gate, self.down, self.last = (torch.nn.Linear(16, 16) for _ in range(4))
        self.steps = [lambda x: self.up(x), (lambda x: x * torch.sigmoid(self.gate(x)),)]
        self.scaled = functools.partial(lambda factor, x: factor * self.last(x), 2.0)
        self.reader = Reader(self)

    def forward(self, x):
        return self.scaled(self.reader(self.steps[1][0](self.steps[0](x))))


def model():
    return Net()


def inputs(batch_size):
    return torch.randn(batch_size, 16)


def loss(y):
    return (y - 1).square().mean()
