"""An array of NumPy that each call writes to, which an array of JAX does not take."""

import numpy as np

SCRATCH = np.zeros((8, 8), "float32")


def scaled(params, x):
    SCRATCH[:] = 0
    np.fill_diagonal(SCRATCH, 2.0)
    return x @ params["w"] @ SCRATCH


def model():
    return scaled, {"w": np.eye(8)}


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8)
