import jax.numpy as jnp
import numpy as np


class Net:
    """Keeps the last call's hidden value for a monitor."""

    def __init__(self):
        self.w = jnp.asarray(np.random.randn(8, 8), "float32")
        self.last = None

    def __call__(self, x):
        h = jnp.tanh(x @ self.w)
        self.last = h
        return h @ self.w


def model():
    return Net()


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
