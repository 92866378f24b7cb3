import dataclasses
from typing import Any, NamedTuple

import numpy as np
import paddle
from paddle import nn


@dataclasses.dataclass
class Batch:
    x: paddle.Tensor
    scale: float
    mask: Any = None


class Pair(NamedTuple):
    first: Any
    second: Any


class Net(nn.Layer):
    """A dataclass, a named tuple and a dict with arrays of NumPy come in; a dataclass goes out."""

    def forward(self, batch, pair, more):
        y = batch.x * batch.scale + pair.first
        for shift in more["shifts"]:
            y = y + shift
        return Batch(y, 2.0), Pair(y.sum(), None)


def model():
    return Net()


def inputs(batch_size=4):
    pair = Pair(np.ones(8, "float32"), None)
    return Batch(paddle.randn([batch_size, 8]), 0.5), pair, {"shifts": [paddle.ones([8]), 1.5]}
