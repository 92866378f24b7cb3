import jax.numpy as jnp
import numpy as np


def model():
    params = jnp.ones((8, 8))

    def forward(params, x):
        return x @ params

    return forward, params


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")


def loss(output):
    return ((output - np.random.randn(*output.shape)) ** 2).mean()
