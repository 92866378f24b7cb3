import jax.numpy as jnp
import numpy as np

MASK = None


def masked(params, x):
    """Make a mask in the first call, and keep it in a global."""
    global MASK
    if MASK is None:
        MASK = jnp.tril(jnp.ones((8, 8)))
    return x @ (params * MASK)


def model():
    return masked, np.random.randn(8, 8).astype("float32")


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")


def loss(output):
    return (output**2).mean()
