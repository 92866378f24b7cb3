import torch
from torch import nn
from torch.nn.attention.flex_attention import flex_attention


class Net(nn.Module):
    def forward(self, x):
        return flex_attention(x, x, x)


def model():
    return Net()


def inputs(batch_size=2):
    return torch.randn(batch_size, 1, 32, 16)
