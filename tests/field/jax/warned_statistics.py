import warnings

import jax.numpy as jnp
import numpy as np


class Net:
    """Keeps a running mean that its output does not read, and warns."""

    def __init__(self):
        self.w, self.mean = jnp.asarray(np.random.randn(16, 16), "float32") / 4, jnp.zeros(16)

    def __call__(self, x):
        warnings.warn("the running mean is experimental", stacklevel=1)
        self.mean = 0.5 * self.mean + x.mean(0)
        return jnp.tanh(x @ self.w)


def model():
    return Net()


def inputs(batch_size=4):
    return np.random.randn(batch_size, 16).astype("float32")


def loss(output):
    return (output**2).mean()
