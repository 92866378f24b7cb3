import numpy as np
from flax import nnx


class Net(nnx.Module):
    """Takes the batch's own statistics, which moves the running ones at every call."""

    def __init__(self, rngs):
        self.dense = nnx.Linear(16, 16, rngs=rngs)
        self.norm = nnx.BatchNorm(16, use_running_average=False, rngs=rngs)

    def __call__(self, x):
        return nnx.relu(self.norm(self.dense(x), use_running_average=False))


def model():
    return Net(nnx.Rngs(0))


def inputs(batch_size=8):
    return np.random.randn(batch_size, 16).astype("float32")
