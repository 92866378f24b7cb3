import jax
import jax.numpy as jnp
import numpy as np


class Noisy:
    """Holds a random key, and splits it in every call."""

    def __init__(self):
        self.w, self.key = jnp.asarray(np.random.randn(8, 8), "float32"), jax.random.key(0)

    def __call__(self, x):
        self.key, key = jax.random.split(self.key)
        return x @ self.w + jax.random.normal(key, x.shape)


def model():
    return Noisy()


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
