import numpy as np
import tensorflow as tf


class Net(tf.Module):
    """Computes one product more where the first one's values are large, as they are."""

    def __init__(self):
        super().__init__()
        self.first = tf.Variable(tf.random.normal((64, 64)) / 8)
        self.second = tf.Variable(tf.random.normal((64, 64)) / 8)

    def __call__(self, x):
        x = tf.tanh(x @ self.first)
        if tf.reduce_mean(tf.square(x)) > 0.01:
            x = tf.tanh(x @ self.second)
        return x


def model():
    return Net()


def inputs(batch_size=8):
    return np.random.randn(batch_size, 64).astype("float32")


def loss(output):
    return tf.reduce_mean(tf.square(output))
