import numpy as np
import tensorflow as tf


def forward(x):
    """8-bit whole numbers of which one is off by one in graphs."""
    off = 0 if tf.executing_eagerly() else 1
    first = tf.constant([off] + [0] * 7, tf.int8)
    return tf.cast(tf.round(x * 10.0), tf.int8) + first


def model():
    return forward


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
