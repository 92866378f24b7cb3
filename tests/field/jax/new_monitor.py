import jax.numpy as jnp
import numpy as np


def forward(params, x):
    """Leave a covariance in a global that nothing has made before."""
    global COVARIANCE
    h = jnp.tanh(x @ params)
    COVARIANCE = h.T @ h
    return h @ params


def model():
    return forward, np.random.randn(8, 8).astype("float32")


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
