import numpy as np
from flax import nnx


class Net(nnx.Module):
    def __init__(self, rngs):
        self.a, self.b = nnx.Linear(64, 256, rngs=rngs), nnx.Linear(256, 64, rngs=rngs)

    @nnx.jit
    def __call__(self, x):
        return self.b(nnx.tanh(self.a(x)))


def model():
    return Net(nnx.Rngs(0))


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
