import keras
import numpy as np


class Rotated(keras.layers.Layer):
    def build(self, shape):
        self.rotation = keras.random.normal((shape[-1], 32), dtype=self.compute_dtype)

    def call(self, x):
        return keras.ops.cos(x @ self.rotation)


def model():
    return keras.Sequential([Rotated(), keras.layers.Dense(32)])


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")
