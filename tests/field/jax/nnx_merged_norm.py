import numpy as np
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.dense, self.norm = nnx.Linear(16, 16, rngs=rngs), nnx.BatchNorm(16, rngs=rngs)

    def __call__(self, x):
        return nnx.relu(self.norm(self.dense(x)))


def model():
    graphdef, state = nnx.split(Net(nnx.Rngs(0)))
    return lambda state, x: nnx.merge(graphdef, state)(x), state


def inputs(batch_size=8):
    return np.random.randn(batch_size, 16).astype("float32")


def loss(output):
    return (output**2).mean()
