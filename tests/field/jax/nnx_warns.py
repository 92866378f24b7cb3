import warnings

import jax.numpy as jnp
import numpy as np
from flax import nnx


class Net(nnx.Module):
    """Subtracts a running mean, which every call moves, and warns: Python keeps the warning among this file's names."""

    def __init__(self, rngs):
        self.dense, self.mean = nnx.Linear(16, 16, rngs=rngs), nnx.Variable(jnp.zeros(16))

    def __call__(self, x):
        warnings.warn("the running mean is experimental", stacklevel=1)
        self.mean[...] = 0.5 * self.mean[...] + x.mean(0)
        return self.dense(x - self.mean[...])


def model():
    return Net(nnx.Rngs(0))


def inputs(batch_size=4):
    return np.random.randn(batch_size, 16).astype("float32")
