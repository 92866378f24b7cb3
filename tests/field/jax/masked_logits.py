"""Logits with a mask of -1e9 whose legal values are off by one in the graph."""

import jax
import jax.numpy as jnp
import numpy as np


def policy(params, x, legal):
    logits = jax.nn.relu(x @ params["w"]) @ params["v"]
    return jnp.where(legal, logits + isinstance(x, jax.core.Tracer) * 1.0, -1e9)


def model():
    return policy, {"w": np.ones((8, 16), "float32"), "v": np.ones((16, 18), "float32")}


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32"), np.random.rand(batch_size, 18) < 0.7
