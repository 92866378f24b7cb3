import jax
import jax.numpy as jnp
import numpy as np


def forward(params, x):
    return jax.jit(lambda y: jnp.tanh(y @ params))(x)


def model():
    return forward, np.random.randn(64, 64).astype("float32") / 8


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
