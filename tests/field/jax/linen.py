import numpy as np
from flax import linen


def model():
    return linen.Dense(4)


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")


def loss(output):
    return (output**2).mean()
