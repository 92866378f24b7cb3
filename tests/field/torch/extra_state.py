"""Training of a layer with state that state_dict() holds as no tensor, and a buffer that it does not hold."""

import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)
        self.register_buffer("steps", torch.zeros(()), persistent=False)

    def get_extra_state(self):
        return {"version": 1}

    def set_extra_state(self, state):
        pass

    def forward(self, x):
        self.steps += 1
        return self.linear(x) / self.steps


def model():
    return Scaled()


def inputs(batch_size=4):
    return torch.randn(batch_size, 8)


def loss(output):
    return output.square().mean()
