import collections

import jax
import jax.numpy as jnp
import numpy as np


class Weights(dict):
    """A dict of the user's own."""


WEIGHTS = Weights(w=jnp.asarray(np.random.default_rng(0).normal(size=(64, 64)), "float32") / 8)
LAYERS = collections.deque([jax.jit(lambda x: jnp.tanh(x @ WEIGHTS["w"])), jax.jit(jax.vmap(lambda x: x * 2))])


def model():
    return lambda x: LAYERS[1](LAYERS[0](x))


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
