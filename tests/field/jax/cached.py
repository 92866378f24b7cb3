import functools

import jax.numpy as jnp
import numpy as np

ROWS = {}


@functools.lru_cache
def positions(length, width):
    return jnp.sin(jnp.arange(length)[:, None] / 100 ** (jnp.arange(width)[None] / width))


class Net:
    """Keeps what it computes: in a cache of Python, an attribute and a dict."""

    def __init__(self):
        self.w = jnp.asarray(np.random.randn(64, 64), "float32") / 8

    @functools.cached_property
    def doubled(self):
        return self.w * 2

    def __call__(self, x):
        if len(x) not in ROWS:
            ROWS[len(x)] = jnp.exp(self.w)
        return (x + positions(*x.shape)) @ self.doubled @ ROWS[len(x)]


def model():
    return Net()


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
