import numpy as np
import tensorflow as tf


class Net:
    """Scales a table that is one of NumPy's arrays, as converters of weights do, and no other."""

    def __init__(self):
        self.table = np.random.randn(512, 64).astype("float32")

    def __call__(self, ids):
        table = self.table
        if isinstance(table, np.ndarray):
            table = tf.constant(table / 8.0)
        return tf.gather(table, ids)


def model():
    return Net()


def inputs(batch_size=4):
    return np.random.randint(0, 512, (batch_size, 16))
