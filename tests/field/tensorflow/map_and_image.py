import numpy as np
import tensorflow as tf


def forward(x):
    """Functions of TensorFlow's own that hold loops and graphs."""
    rows = tf.map_fn(lambda row: tf.cumsum(row), x)
    return tf.image.resize(tf.reshape(rows, (-1, 2, 4, 1)), (4, 4))


def model():
    return forward


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
