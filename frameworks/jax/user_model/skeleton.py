"""Measured by `make bench WORKLOAD=model.py`, which calls model() once and its result with what inputs() returns."""

import jax
import numpy as np


def model():
    weights = {"up": np.random.randn(256, 512) / 16, "down": np.random.randn(512, 256) / 23}
    return lambda params, x: jax.nn.gelu(x @ params["up"]) @ params["down"], weights


def inputs(batch_size):
    return np.random.randn(batch_size, 256)


# For PASS=training uncomment it, and set dropout to 0. It gives a scalar of what the model returned.
# def loss(output):
#     return (output**2).mean()
