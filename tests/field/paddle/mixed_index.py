import paddle
from paddle import nn


class Net(nn.Layer):
    """Takes channels by slices and an index tensor at once, and the same of several axes."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(16, 16)
        self.register_buffer("kept", paddle.to_tensor([0, 2, 5]))

    def forward(self, x):
        y = self.net(x)
        return y[:, 1:5, self.kept], y[:, self.kept, 1:5], y[self.kept, :, self.kept]


def model():
    return Net()


def inputs(batch_size=8):
    return paddle.randn([batch_size, 8, 16])
