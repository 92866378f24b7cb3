import torch
from torch import nn
from torch.nn.functional import grouped_mm


class Experts(nn.Module):
    """Multiplies rows, or columns, of three experts at once, as mixtures of experts do."""

    def __init__(self):
        super().__init__()
        self.stacked, self.wide = nn.Parameter(torch.randn(3, 16, 32)), nn.Parameter(torch.randn(16, 32))
        self.register_buffer("ends", torch.tensor([2, 5, 8], dtype=torch.int32))
        self.register_buffer("within", torch.tensor([4, 12, 16], dtype=torch.int32))
        self.register_buffer("columns", torch.tensor([8, 16, 32], dtype=torch.int32))

    def forward(self, rows, batches):
        return (
            grouped_mm(rows, self.stacked, offs=self.ends),
            grouped_mm(batches, self.stacked),
            grouped_mm(rows, self.wide, offs=self.within),
            grouped_mm(batches, self.wide, offs=self.columns),
        )


def model():
    return Experts()


def inputs():
    return torch.randn(8, 16), torch.randn(3, 8, 16)
