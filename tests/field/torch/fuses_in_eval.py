import torch
from torch import nn


class Branches(nn.Module):
    """Fuses its branches for deployment, as re-parameterized networks do."""

    def __init__(self):
        super().__init__()
        self.branches, self.fused = nn.ModuleList(nn.Linear(8, 8) for _ in range(4)), None

    def eval(self):
        super().eval()
        self.fused = nn.Linear(8, 8)
        with torch.no_grad():
            self.fused.weight.copy_(sum(branch.weight for branch in self.branches))
            self.fused.bias.copy_(sum(branch.bias for branch in self.branches))

    def forward(self, x):
        return self.fused(x) if self.fused is not None else sum(branch(x) for branch in self.branches)


def model():
    return Branches()


def inputs(batch_size=4):
    return torch.randn(batch_size, 8)


def loss(output):
    return output.square().mean()
