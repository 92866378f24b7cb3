import paddle
from paddle import nn


class Net(nn.Layer):
    """Moves a buffer in each call: one that is bound again, and one that is written to."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", paddle.zeros([8]))
        self.register_buffer("calls", paddle.zeros([1], dtype="int64"))

    def forward(self, x):
        self.mean = self.mean * 0.9 + x.mean(0) * 0.1
        paddle.assign(self.calls + 1, self.calls)
        return x - self.mean, self.calls


def model():
    return Net()


def inputs(batch_size=4):
    return paddle.randn([batch_size, 8])
