import jax.numpy as jnp
import numpy as np


class Net:
    """Keeps a running mean in float32, and subtracts it."""

    def __init__(self):
        self.w = jnp.asarray(np.random.randn(64, 64), "float32") / 8
        self.mean = jnp.zeros(64)

    def __call__(self, x):
        self.mean = 0.9 * self.mean + 0.1 * x.astype(jnp.float32).mean(0)
        return jnp.tanh(x @ self.w) - self.mean


def model():
    return Net()


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
