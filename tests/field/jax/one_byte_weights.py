import jax.numpy as jnp
import numpy as np


def apply(params, x):
    assert params["w"].dtype == jnp.float8_e4m3fn
    return x @ (params["w"].astype(x.dtype) * params["s"].astype(x.dtype)).T


def model():
    w = np.random.default_rng(0).normal(size=(16, 16)) / 4
    return apply, {"w": jnp.asarray(w, jnp.float8_e4m3fn), "s": jnp.full((16, 1), 0.1)}


def inputs(batch_size):
    return np.random.randn(batch_size, 16).astype("float32")
