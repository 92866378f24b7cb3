import jax.numpy as jnp
import numpy as np

W = jnp.asarray(np.random.default_rng(0).normal(size=(64, 64)), "float32") / 8


def forward(x):
    return jnp.tanh(x @ W) @ W.T


def model():
    return forward


def loss(output):
    return (output**2).mean()


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
