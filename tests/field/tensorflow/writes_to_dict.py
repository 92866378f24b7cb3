import numpy as np
import tensorflow as tf


class Net(tf.Module):
    """Replaces an entry of its inputs by a value that is equal to it and takes no work in the next call."""

    def __init__(self):
        self.w = tf.Variable(np.random.randn(8, 8).astype("float32"))

    def __call__(self, inputs):
        if isinstance(inputs["x"], tf.Tensor):
            inputs["x"] = tf.Variable(inputs["x"])
        return tf.tanh(inputs["x"] @ self.w)


def model():
    return Net()


def inputs(batch_size=4):
    return ({"x": np.random.randn(batch_size, 8).astype("float32")},)
