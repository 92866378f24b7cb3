import keras
import numpy as np


class Noisy(keras.layers.Layer):
    """Noise of Keras' own generator, whose state is a variable."""

    def __init__(self):
        super().__init__()
        self.seeds = keras.random.SeedGenerator(7)

    def call(self, x):
        return x + keras.random.normal(keras.ops.shape(x), seed=self.seeds)


def model():
    return Noisy()


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
