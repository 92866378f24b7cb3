import numpy as np
import tensorflow as tf


def forward(x):
    """Dropout that is always on."""
    return tf.nn.dropout(x, 0.1)


def model():
    return forward


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
