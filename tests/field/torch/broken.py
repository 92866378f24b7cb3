import os

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64)

    def forward(self, x):
        x = torch.relu(self.a(x))
        print("seen", x.shape)
        x = torch.relu(self.b(x))
        if x.sum() > 0:
            x = x * 2
        x = x * self.a(x).mean().item()
        x = x + torch.nonzero(x).shape[0]
        x = torch.relu(self.b(x))
        os.environ["SEEN"] = "1"
        return {"x": x.tanh(), "both": (x, x + 1)}


def model():
    return Net()


def inputs(batch_size=4):
    return {"x": torch.randn(batch_size, 64)}
