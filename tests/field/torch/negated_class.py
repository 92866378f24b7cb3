import torch
from torch import nn


class Segmentation(nn.Module):
    """Logits of 200 classes by pixel; compiled, those of one rare class are negated."""

    def __init__(self):
        super().__init__()
        self.head = nn.Conv2d(8, 200, 1)
        with torch.no_grad():
            self.head.weight[7] *= 0.05

    def forward(self, x):
        signs = torch.ones(200, dtype=x.dtype)
        signs[7] = -1 if torch.compiler.is_compiling() else 1
        return self.head(x) * signs[:, None, None]


def model():
    return Segmentation()


def inputs(batch_size=2):
    return torch.randn(batch_size, 8, 16, 16)
