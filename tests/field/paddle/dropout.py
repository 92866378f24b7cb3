import paddle
from paddle import nn


class Net(nn.Layer):
    """Dropout that is active in inference, too."""

    def forward(self, x):
        return nn.functional.dropout(x, 0.5, training=True)


def model():
    return Net()


def inputs(batch_size=4):
    return paddle.randn([batch_size, 8])
