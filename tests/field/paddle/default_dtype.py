import paddle
from paddle import nn

paddle.set_default_dtype("float64")


class Net(nn.Layer):
    """Made under another default dtype, which the file sets for its process."""

    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(8, 8)
        self.register_buffer("shift", paddle.ones([8]))

    def forward(self, x):
        return self.dense(x) + self.shift + paddle.full([8], 0.5)


def model():
    return Net()


def inputs(batch_size=4):
    return paddle.randn([batch_size, 8])
