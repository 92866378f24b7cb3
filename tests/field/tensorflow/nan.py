import numpy as np
import tensorflow as tf


def forward(x):
    """The mean of an empty row in 16 bits."""
    there = tf.cast(x[:, :1] > 100.0, x.dtype)
    return tf.concat([x * 2.0, tf.reduce_sum(x * there, 1, keepdims=True) / tf.reduce_sum(there, 1, keepdims=True)], 1)


def model():
    return forward


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
