import functools

import jax
import jax.numpy as jnp
import numpy as np


@functools.lru_cache
def layers(depth):
    def run(params, x):
        for _ in range(depth):
            x = jnp.tanh(x @ params)
        return x

    return jax.jit(run, inline=True)


def forward(params, x):
    return layers(2)(params, x)


def model():
    return forward, np.random.randn(8, 8).astype("float32")


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
