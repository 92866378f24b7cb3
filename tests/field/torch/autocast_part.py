import torch
from torch import nn


class AutocastPart(nn.Module):
    """Autocast of one part, the rest in float32."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.first(x)
        return self.second(y.float())


def model():
    return AutocastPart()


def inputs(batch_size=4):
    return torch.randn(batch_size, 16)
