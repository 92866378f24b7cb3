import paddle
from paddle import nn


@paddle.jit.to_static
def halved(x):
    return x / 2


class Part(nn.Layer):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(8, 8)

    @paddle.jit.to_static
    def hot(self, x):
        return paddle.tanh(self.dense(x))

    def forward(self, x):
        return self.hot(x)


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.parts = nn.LayerList([Part(), paddle.jit.to_static(Part())])
        self.function = paddle.jit.to_static(lambda x: x + 1)

    @paddle.jit.to_static
    def forward(self, x):
        for part in self.parts:
            x = halved(part(x))
        return self.function(x)


def model():
    return Net()


def inputs(batch_size=4):
    return paddle.randn([batch_size, 8])
