import numpy as np
import tensorflow as tf

BIAS = np.arange(256, dtype="float32") / 256


class Net:
    """Reads NumPy's arrays from a list of tuples, a global and an attribute: w + b @ a is computed in the call."""

    def __init__(self):
        self.scale = np.linspace(0.5, 1.5, 256)
        self.layers = [
            (np.random.randn(256, 256) / 16, np.random.randn(256, 8) / 16, np.random.randn(8, 256) / 16)
            for _ in range(2)
        ]

    def __call__(self, x):
        for w, b, a in self.layers:
            x = tf.tanh(x @ (w + tf.matmul(b, a)) * self.scale + BIAS)
        return x


def model():
    return Net()


def inputs(batch_size=2):
    return np.random.randn(batch_size, 256).astype("float32")
