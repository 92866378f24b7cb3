import paddle
from paddle import nn


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", None)

    def forward(self, x):
        self.cache = x if self.cache is None else 0.5 * (self.cache + x)
        return self.cache.sum(0)


def model():
    return Net()


def inputs(batch_size=4):
    return paddle.randn([batch_size, 8])
