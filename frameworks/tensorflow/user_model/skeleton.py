"""Measured by `make bench WORKLOAD=model.py`, which calls model() once and its result with what inputs() returns."""

import keras
import numpy as np


def model():
    return keras.Sequential([keras.Input((256,)), keras.layers.Dense(512, "gelu"), keras.layers.Dense(256)])


def inputs(batch_size):
    return np.random.randn(batch_size, 256).astype("float32")


# For PASS=training uncomment it. It gives a scalar of what the model returned.
# def loss(output):
#     return keras.ops.mean(keras.ops.square(output))
