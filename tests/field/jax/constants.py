import itertools

import jax.numpy as jnp
import numpy as np

WEIGHTS = itertools.cycle([jnp.asarray(np.random.default_rng(0).normal(size=(64, 64)), "float32") / 8])


def model():
    return lambda x: jnp.tanh(jnp.einsum("ij,jk->ik", x, next(WEIGHTS)))


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
