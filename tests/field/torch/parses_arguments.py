import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=16)
arguments = parser.parse_args()


def model():
    return nn.Linear(arguments.width, arguments.width)


def inputs(batch_size=4):
    return torch.randn(batch_size, arguments.width)
