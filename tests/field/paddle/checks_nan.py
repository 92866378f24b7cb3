import paddle
from paddle import nn

paddle.set_flags({"FLAGS_check_nan_inf": True})  # left on


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.layers = nn.LayerList([nn.Linear(64, 64) for _ in range(10)])

    def forward(self, x):
        for layer in self.layers:
            x = paddle.tanh(layer(x)) + x * 0.5
        return x


def model():
    return Net()


def inputs(batch_size=16):
    return paddle.randn([batch_size, 64])
