import keras
import numpy as np
import tensorflow as tf


class Net(keras.layers.Layer):
    """Keeps each call's covariance for a monitor."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.seen = keras.layers.Dense(8, "tanh"), keras.layers.Dense(8), {}

    def call(self, x):
        h = self.first(x)
        self.seen["covariance"] = tf.matmul(h, h, transpose_a=True)
        return self.second(h)


def model():
    return Net()


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
