import paddle
from paddle import nn
from paddle.autograd import PyLayer


class Swish(PyLayer):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * nn.functional.sigmoid(x)

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensor()
        share = nn.functional.sigmoid(x)
        return gradient * (share + x * share * (1 - share))


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(16, 32), nn.Linear(32, 4)

    def forward(self, x):
        return self.last(Swish.apply(self.first(x)))


def model():
    return Net()


def inputs(batch_size):
    return paddle.randn([batch_size, 16])


def loss(output):
    return (output**2).mean()
