from multiprocessing.pool import ThreadPool

import torch
from torch import nn

POOL = ThreadPool(2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.experts = nn.ModuleList(nn.Linear(64, 64) for _ in range(2))

    def forward(self, x):
        def run(expert):
            with torch.no_grad():
                return expert(x)

        return sum(POOL.map(run, self.experts))


def model():
    return Net()


def inputs(batch_size=16):
    return torch.randn(batch_size, 64)
