import numpy as np
import tensorflow as tf


class Net(tf.Module):
    def __init__(self):
        self.weight = tf.Variable(tf.random.normal((16, 16)) / 16)

    def __call__(self, x):
        def going(step, x):
            return tf.logical_and(step < 9, tf.reduce_max(tf.abs(x)) > 1e-2)

        return tf.while_loop(going, lambda step, x: (step + 1, tf.tanh(x @ self.weight)), (tf.constant(0), x))[1]


def model():
    return Net()


def inputs(batch_size):
    return np.random.randn(batch_size, 16).astype("float32")
