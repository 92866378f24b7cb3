import collections
import sys

import torch
from torch import nn

CALLS = collections.Counter()
sys.setprofile(lambda frame, event, argument: CALLS.update([frame.f_code.co_name]))


def model():
    return nn.Sequential(nn.Linear(8, 8), nn.GELU(), nn.LayerNorm(8))


def inputs(batch_size=4):
    return torch.randn(batch_size, 8)
