"""The joint network of an RNN transducer: every frame of the encoder with every token of the predictor."""

import torch
from torch import nn


class Joint(nn.Module):
    def __init__(self, width=256, vocabulary=500):
        super().__init__()
        self.frames, self.tokens = nn.Linear(320, width), nn.Linear(160, width)
        self.out = nn.Linear(width, vocabulary)

    def forward(self, encoded, predicted):
        joined = self.frames(encoded)[:, :, None] + self.tokens(predicted)[:, None]
        return self.out(joined.tanh()).log_softmax(-1)


def model():
    return Joint()


def inputs(batch_size, frames=40, tokens=12):
    return torch.randn(batch_size, frames, 320), torch.randn(batch_size, tokens, 160)
