import jax.numpy as jnp
import numpy as np


class Rotary:
    __slots__ = ("cos", "length", "w")

    def __init__(self):
        self.w = jnp.asarray(np.random.randn(8, 8), "float32")

    def __call__(self, x):
        if getattr(self, "length", None) != x.shape[1]:
            self.length = x.shape[1]
            self.cos = jnp.cos(jnp.arange(x.shape[1])[:, None] / 10.0)
        return (x * self.cos) @ self.w


def model():
    return Rotary()


def inputs(batch_size=4):
    return np.random.randn(batch_size, np.random.choice([4, 6]), 8).astype("float32")
