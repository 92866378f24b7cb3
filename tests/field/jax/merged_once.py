import jax.numpy as jnp
import numpy as np


class Net:
    def __init__(self):
        self.weight = jnp.asarray(np.random.randn(16, 16), "float32")
        self.down = jnp.asarray(np.random.randn(16, 2), "float32")
        self.up = jnp.asarray(np.random.randn(2, 16), "float32")
        self.merged = None

    def __call__(self, x):
        if self.merged is None:
            self.merged = self.weight + self.down @ self.up
        return jnp.tanh(x @ self.merged)


def model():
    return Net()


def inputs(batch_size=4):
    return np.random.randn(batch_size, 16).astype("float32")
