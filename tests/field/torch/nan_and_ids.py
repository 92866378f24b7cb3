import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return {"logits": x * float("nan"), "ids": x.argmax(-1)}


def model():
    return Net()


def inputs(batch_size=4):
    return torch.randn(batch_size, 8)
