import collections

import jax.numpy as jnp
import numpy as np

LAST = None
SUMS = collections.defaultdict(float)


class Stats:
    total = None


def watched():
    kept = None

    def forward(params, x):
        """Sum a covariance in a global, a closure, an attribute of a function and of a class, and a defaultdict."""
        global LAST
        nonlocal kept
        h = jnp.tanh(x @ params)
        covariance = h.T @ h
        LAST = covariance if LAST is None else LAST + covariance
        kept = covariance if kept is None else kept + covariance
        forward.total = getattr(forward, "total", 0.0) + covariance
        Stats.total = covariance if Stats.total is None else Stats.total + covariance
        SUMS["covariance"] += covariance
        return h @ params

    return forward


def model():
    return watched(), np.random.randn(8, 8).astype("float32")


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
