import functools

import jax
import jax.numpy as jnp
import numpy as np


@functools.partial(jax.jit, donate_argnums=0)
def update(cache, x):
    return cache.at[0].set(x), (cache * 2).sum()


def model():
    return update


def inputs(batch_size=4):
    return jnp.ones((8, batch_size)), np.random.randn(batch_size).astype("float32")
