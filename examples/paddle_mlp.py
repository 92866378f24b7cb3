"""A small network in PaddlePaddle: `eager-vs-graph examples/paddle_mlp.py --batch 1,64`."""

import paddle
from paddle import nn


def model():
    """Return the layer to be measured."""
    return nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 10))


def inputs(batch_size):
    """Return the layer's input."""
    return paddle.randn([batch_size, 256])
