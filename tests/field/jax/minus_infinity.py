import jax.numpy as jnp
import numpy as np


def forward(params, x, allowed):
    return jnp.where(allowed, x @ params, -jnp.inf)


def model():
    return forward, np.random.randn(16, 8).astype("float32")


def inputs(batch_size=8):
    return {"x": np.random.randn(batch_size, 16).astype("float32"), "allowed": np.random.rand(batch_size, 8) > 0.3}
