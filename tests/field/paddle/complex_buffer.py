import paddle
from paddle import nn


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.register_buffer("turn", paddle.exp(paddle.complex(paddle.zeros([8]), paddle.arange(8.0))))

    def forward(self, x):
        turned = x * self.turn
        return turned.real(), turned.imag()


def model():
    return Net()


def inputs(batch_size=4):
    return paddle.randn([batch_size, 8])
