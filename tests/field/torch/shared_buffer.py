import torch
from torch import nn


class Part(nn.Module):
    def __init__(self, shared):
        super().__init__()
        self.register_buffer("shared", shared)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        shared = torch.zeros(8)
        self.writer, self.reader = Part(shared), Part(shared)

    def forward(self, x):
        self.writer.shared.copy_(x.mean(0) * 0.5)
        return x + self.reader.shared


def model():
    return Net()


def inputs(batch_size=4):
    return torch.randn(batch_size, 8)
