import numpy as np
import tensorflow as tf


class Net(tf.keras.Model):
    """One argument, a dict."""

    def __init__(self):
        super().__init__()
        self.dense = tf.keras.layers.Dense(4)

    def call(self, batch):
        return self.dense(batch["x"])


def model():
    return Net()


def inputs(batch_size=4):
    return {"x": np.random.randn(batch_size, 8)}
