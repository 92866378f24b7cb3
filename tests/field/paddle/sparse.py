import paddle
from paddle import nn


class Net(nn.Layer):
    """A sparse tensor comes in, and sparse and dense ones go out."""

    def __init__(self):
        super().__init__()
        self.weight = self.create_parameter([8, 8])

    def forward(self, x):
        return paddle.sparse.nn.functional.relu(x), x.to_dense() @ self.weight


def model():
    return Net()


def inputs(batch_size=4):
    return paddle.eye(batch_size, 8).to_sparse_coo(2)
