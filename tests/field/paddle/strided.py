import paddle
from paddle import nn


def model():
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 10))


def inputs(batch_size=8):
    return paddle.randn([batch_size, 32, 16]).transpose([0, 2, 1])
