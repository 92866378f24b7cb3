import numpy as np
import tensorflow as tf


def forward(x):
    """The place of the largest value where there is a NaN, which XLA takes for the largest."""
    return tf.argmax(x, axis=1)


def model():
    return forward


def inputs(batch_size=8):
    x = np.random.randn(batch_size, 16).astype("float32")
    x[:4, -1] = np.nan
    return x
