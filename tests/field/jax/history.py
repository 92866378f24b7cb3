import jax.numpy as jnp
import numpy as np


class Net:
    """Appends each call's hidden value to a list, which the output needs as well."""

    def __init__(self):
        self.w = jnp.asarray(np.random.randn(8, 8), "float32")
        self.history = []

    def __call__(self, x):
        self.history.append(jnp.tanh(x @ self.w))
        return self.history[-1] @ self.w


def model():
    return Net()


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
