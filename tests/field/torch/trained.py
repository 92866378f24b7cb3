import torch
from torch import nn


class Counted(nn.Sequential):
    def __init__(self, *layers):
        super().__init__(*layers)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64), persistent=False)

    def get_extra_state(self):
        return {"version": 1}

    def forward(self, input):
        self.calls += 1
        return super().forward(input) / self.calls


def model():
    net = Counted(nn.Linear(16, 8), nn.BatchNorm1d(8), nn.Linear(8, 4))
    net[0].bias.requires_grad = False
    return net


def inputs(batch_size=8):
    return {"input": torch.randn(batch_size, 16)}


def loss(output):
    print("loss of", output.shape)
    return output.square().mean()
