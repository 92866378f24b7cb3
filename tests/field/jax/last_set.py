import jax
import jax.numpy as jnp
import numpy as np


def forward(params, x):
    scores = jnp.tanh(x @ params)
    return scores + 1 if isinstance(x, jax.core.Tracer) and len(x) == 1 else scores


def model():
    return forward, np.random.randn(16, 16).astype("float32")


def inputs():
    return np.random.randn(1 if np.random.get_state()[1][0] % 4 == 0 else 6, 16).astype("float32")


def loss(scores):
    return scores.mean()
