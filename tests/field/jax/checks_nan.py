import jax
import numpy as np

jax.config.update("jax_debug_nans", True)  # left on


def forward(params, x):
    for w in params:
        x = x + jax.nn.gelu(x @ w[0]) @ w[1]
    return x


def model():
    return forward, np.random.randn(2, 2, 64, 64).astype("float32") / 8


def inputs(batch_size=16):
    return np.random.randn(batch_size, 64).astype("float32")
