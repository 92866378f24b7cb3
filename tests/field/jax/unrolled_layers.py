import jax
import numpy as np


def forward(weights, x):
    x = jax.lax.scan(lambda x, weight: (x @ weight, None), x, weights, unroll=True)[0]
    x = jax.lax.scan(lambda x, weight: (x @ weight, None), x, weights, unroll=2)[0]
    return jax.lax.cond(x.sum() > 0, lambda: x, lambda: x + 1)


def model():
    return forward, np.random.randn(7, 32, 32).astype("float32") / 6


def inputs(batch_size):
    return np.random.randn(batch_size, 32).astype("float32")
