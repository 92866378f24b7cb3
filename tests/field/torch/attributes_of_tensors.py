import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x):
        return self.layer(x) * x.scale


def model():
    return Scaled()


def inputs(batch_size=4):
    x = torch.randn(batch_size + int(torch.randint(0, 6, ())), 16)
    x.scale = 2.0
    torch._dynamo.mark_dynamic(x, 0)
    return x
