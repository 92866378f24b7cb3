import functools

import jax
import jax.numpy as jnp
import numpy as np


def forward(params, x):
    return jnp.tanh(x @ params)


def model():
    return forward, np.random.randn(8, 8).astype("float32")


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")


@functools.partial(jax.jit, static_argnums=1)
def robust(difference, sharpness):
    return jnp.sqrt(difference**2 + sharpness)


@jax.jit
def loss(output):
    return jnp.mean(robust(output - jnp.roll(output, 1, axis=-1), 1e-3))
