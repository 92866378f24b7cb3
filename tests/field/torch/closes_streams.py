import sys
import warnings

import torch
from torch import nn

sys.stdout.close()
sys.stderr.close()


class Warns(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        if not torch.compiler.is_compiling():
            warnings.warn("as torch itself may warn", stacklevel=1)
        return self.layer(x)


def model():
    sys.stdout = None
    return Warns()


def inputs(batch_size=4):
    return torch.randn(batch_size, 8)
