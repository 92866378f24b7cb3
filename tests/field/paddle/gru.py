import paddle
from paddle import nn


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(8, 16)

    def forward(self, x):
        return self.gru(x)[0]


def model():
    return Net()


def inputs(batch_size=4):
    return paddle.randn([batch_size, 6, 8])
