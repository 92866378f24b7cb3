"""A small convolutional network in Flax NNX with batch norm and dropout."""

import jax
import numpy as np
from flax import nnx


class CNN(nnx.Module):
    def __init__(self, rngs):
        self.first, self.second = nnx.Conv(1, 16, (3, 3), rngs=rngs), nnx.Conv(16, 32, (3, 3), rngs=rngs)
        self.norm, self.dropout = nnx.BatchNorm(16, rngs=rngs), nnx.Dropout(0.2, rngs=rngs)
        self.out = nnx.Linear(32 * 7 * 7, 10, rngs=rngs)

    def __call__(self, x):
        x = nnx.avg_pool(jax.nn.relu(self.norm(self.first(x))), (2, 2), strides=(2, 2))
        x = nnx.avg_pool(jax.nn.relu(self.second(x)), (2, 2), strides=(2, 2))
        return self.out(self.dropout(x.reshape(len(x), -1)))


def model():
    return CNN(nnx.Rngs(0))


def inputs(batch_size):
    return np.random.randn(batch_size, 28, 28, 1).astype("float32")
