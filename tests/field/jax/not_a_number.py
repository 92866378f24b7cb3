import jax.numpy as jnp
import numpy as np


def model():
    return lambda x: {"scores": jnp.log(-jnp.abs(x)), "largest": -jnp.inf * jnp.abs(x).max()}


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
