import jax.numpy as jnp
import numpy as np


def forward(params, x):
    """Leave a covariance in a new global dict, whose keys Python cannot sort."""
    global TABLE
    h = jnp.tanh(x @ params)
    TABLE = {"version": 1, (0, 1): h.T @ h}
    return h @ params


def model():
    return forward, np.random.randn(8, 8).astype("float32")


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
