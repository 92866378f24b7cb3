import functools

import jax
import jax.numpy as jnp
import numpy as np


@functools.partial(jax.jit, static_argnums=1, static_argnames="axis")
def chosen(x, times, count, *, axis, scale=1.0):
    for _ in range(times):
        x = jnp.where(jnp.arange(x.shape[axis])[:, None] < count.astype(x.dtype), x * scale, x)
    return x.at[count.clip(0, 1)].set(scale.astype(x.dtype))


class Net:
    """Calls functions under jit with numbers of Python, which jit makes arrays where they are not static."""

    def __init__(self):
        self.w = jnp.asarray(np.random.randn(64, 64), "float32") / 8

    @functools.partial(jax.jit, static_argnums=0)
    def product(self, x, options):
        return x @ self.w * options["scale"].clip(0, 9)

    def __call__(self, x):
        return chosen(self.product(x, {"scale": 2}), 3, 2, axis=0, scale=0.5)


def model():
    return Net()


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
