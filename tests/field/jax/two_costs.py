import jax
import numpy as np


def forward(weight, x):
    return jax.lax.cond(x.sum() > 0, lambda: x @ weight @ weight, lambda: x @ weight)


def model():
    return forward, np.random.randn(16, 16).astype("float32")


def inputs(batch_size):
    return np.random.randn(batch_size, 16).astype("float32")
