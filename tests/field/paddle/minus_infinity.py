import paddle
from paddle import nn


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(8, 8)

    def forward(self, x, allowed):
        y = self.dense(x)
        return paddle.where(allowed, y, paddle.full_like(y, -float("inf"))), y.sum(1) / allowed.astype(y.dtype).sum(1)


def model():
    return Net()


def inputs(batch_size=4):
    allowed = paddle.rand([batch_size, 8]) > 0.5
    allowed[0] = False
    return {"x": paddle.randn([batch_size, 8]) * allowed.any(1, keepdim=True).astype("float32"), "allowed": allowed}
