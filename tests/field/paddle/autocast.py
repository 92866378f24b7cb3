import paddle
from paddle import nn


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(8, 8)

    def forward(self, x):
        with paddle.amp.auto_cast(dtype="bfloat16"):
            return self.dense(x)


def model():
    return Net()


def inputs(batch_size=4):
    return paddle.randn([batch_size, 8])
