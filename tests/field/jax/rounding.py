import jax.numpy as jnp
import numpy as np


def model():
    return lambda x: {"sums": x.sum(-1), "residual": jnp.exp(jnp.log(jnp.abs(x))) - jnp.abs(x)}


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
