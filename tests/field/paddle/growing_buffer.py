import paddle
from paddle import nn


class Net(nn.Layer):
    """Sums over a cache that each call grows."""

    def __init__(self):
        super().__init__()
        self.register_buffer("keys", paddle.zeros([1, 8]))

    def forward(self, x):
        self.keys = paddle.concat([self.keys, x])
        return self.keys.sum(0)


def model():
    return Net()


def inputs(batch_size=4):
    return paddle.randn([batch_size, 8])
