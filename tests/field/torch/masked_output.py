import torch
from torch import nn
from torch.masked import masked_tensor


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x):
        y = self.layer(x)
        return masked_tensor(y, y > 0)


def model():
    return Masked()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
