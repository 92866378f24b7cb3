import torch
from torch import nn


class Tagger(nn.Module):
    """A loss over the labelled tokens alone, of which there are none: the mean of nothing is NaN."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 5))

    def forward(self, x, labels):
        return self.net(x), labels


def model():
    return Tagger()


def loss(output):
    logits, labels = output
    return nn.functional.cross_entropy(logits, labels, ignore_index=-100)


def inputs(batch_size=8):
    return torch.randn(batch_size, 16), torch.full((batch_size,), -100)
