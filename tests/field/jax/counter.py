import jax.numpy as jnp
import numpy as np


class Net:
    """Scales by how often it was called, a number of Python: jit keeps that of its first call."""

    def __init__(self):
        self.w, self.calls = jnp.asarray(np.random.randn(64, 64), "float32") / 8, 0

    def __call__(self, x):
        self.calls += 1
        return jnp.tanh(x @ self.w) * self.calls


def model():
    return Net()


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
