import itertools

import jax
import jax.numpy as jnp
import numpy as np


def doubled(x):
    return x * 2


LAYERS = itertools.cycle([jax.jit(jax.vmap(doubled))])


def model():
    return lambda x: jnp.where(next(LAYERS)(x) > 0, jax.nn.gelu(x), 0.0)


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
