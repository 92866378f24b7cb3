import paddle
from paddle import nn


class Net(nn.Layer):
    """One weight in two layers, one under weight norm, and a tensor that is in no buffer."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(8, 8), nn.Linear(8, 8)
        self.b.weight = self.a.weight
        self.c = nn.utils.weight_norm(nn.Linear(8, 8))
        self.shifts = [paddle.ones([8])]

    def forward(self, x):
        return self.c(paddle.tanh(self.b(paddle.tanh(self.a(x)))) + self.shifts[0])


def model():
    return Net()


def inputs(batch_size=4):
    return paddle.randn([batch_size, 8])
