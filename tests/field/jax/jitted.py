import jax
import numpy as np


@jax.jit
def forward(params, x):
    for w in params:
        x = jax.nn.tanh(x @ w) * jax.nn.sigmoid(x)
    return x


def model():
    return forward, [np.random.randn(64, 64).astype("float32") / 8 for _ in range(6)]


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
