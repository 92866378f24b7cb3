import random

import jax.numpy as jnp
import numpy as np


def forward(params, x):
    return jnp.tanh(x @ params).mean(0)


def model():
    return forward, np.random.randn(16, 16).astype("float32")


def inputs(batch_size=8):
    return np.random.randn(random.randint(3, 40), 16).astype("float32")
