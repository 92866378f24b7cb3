import jax
import numpy as np


def forward(params, x):
    y = x @ params
    return jax.pure_callback(np.tanh, jax.ShapeDtypeStruct(y.shape, y.dtype), y)


def model():
    return forward, np.random.randn(64, 64).astype("float32") / 8


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
