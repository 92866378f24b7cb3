import numpy as np
import tensorflow as tf


class Net(tf.Module):
    def __init__(self):
        self.weight = tf.Variable(tf.random.normal((16, 4)))

    def __call__(self, x):
        total = tf.zeros((4,))
        for rows in tf.data.Dataset.from_tensor_slices(x).batch(2):
            total += tf.reduce_sum(rows @ self.weight, 0)
        return total


def model():
    return Net()


def inputs(batch_size):
    return np.random.randn(batch_size + 3, 16).astype("float32")
