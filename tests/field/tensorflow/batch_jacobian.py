import numpy as np
import tensorflow as tf


class Net(tf.Module):
    def __init__(self):
        self.w = tf.Variable(np.random.randn(8, 8).astype("float32"))

    def __call__(self, x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.tanh(x @ self.w)
        return tape.batch_jacobian(y, x)


def model():
    return Net()


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
