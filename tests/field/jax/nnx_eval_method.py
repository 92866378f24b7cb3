import jax.numpy as jnp
import numpy as np
from flax import nnx


class Net(nnx.Module):
    """A class whose own method is called `eval`."""

    def __init__(self, rngs):
        self.linear, self.drop = nnx.Linear(16, 16, rngs=rngs), nnx.Dropout(0.5, rngs=rngs)

    def __call__(self, x):
        return self.drop(nnx.gelu(self.linear(x)))

    def eval(self, batch):
        return jnp.mean(self(batch))


def model():
    return Net(nnx.Rngs(0))


def inputs(batch_size=4):
    return np.random.randn(batch_size, 16).astype("float32")
