import numpy as np
import tensorflow as tf


class Scores(tf.Module):
    """The graph of a single row is wrong."""

    def __init__(self):
        super().__init__()
        self.weight = tf.Variable(tf.random.normal((16, 16)))

    def __call__(self, x):
        scores = tf.tanh(x @ self.weight)
        return scores if tf.executing_eagerly() or x.shape[0] != 1 else scores + 1


def model():
    return Scores()


def inputs():
    return np.random.randn(1 if np.random.get_state()[1][0] % 4 == 0 else 6, 16).astype("float32")


def loss(scores):
    return tf.reduce_mean(scores)
