"""The right side of `and` writes to a tensor: eager mode runs it where the left side is true alone."""

import paddle
from paddle import nn


def grown(y):
    y.scale_(1000.0)
    return y.sum() > 0


class Net(nn.Layer):
    def forward(self, x, flag):
        y = x * 2
        if flag.sum() > 0 and grown(y):
            return y + 1
        return y - 1


def model():
    return Net()


def inputs(batch_size=4):
    return paddle.rand([batch_size, 8]), paddle.full([1], -1.0)
