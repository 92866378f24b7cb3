import jax.numpy as jnp
import numpy as np


def forward(params, x, count):
    y = x @ params
    return y.sum(1) / count, jnp.where(count > 0, y.max(1), -jnp.inf)


def model():
    return forward, np.random.randn(64, 64).astype("float32") / 8


def inputs(batch_size=4):
    x, count = np.random.randn(batch_size, 64).astype("float32"), np.ones(batch_size, "float32")
    x[0] = count[0] = 0
    return x, count
