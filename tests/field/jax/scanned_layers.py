import jax
import numpy as np


def forward(weights, x):
    x, means = jax.lax.scan(lambda x, weight: (x @ weight, x.mean()), x, weights)
    return jax.lax.fori_loop(0, 4, lambda index, x: x @ weights[index], x), means


def model():
    return jax.jit(forward), np.random.randn(4, 32, 32).astype("float32") / 6


def inputs(batch_size):
    return np.random.randn(batch_size, 32).astype("float32")
