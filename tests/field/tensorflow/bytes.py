import numpy as np
import tensorflow as tf


def forward(x):
    """Squares in 8 bits that overflow, of which XLA believes that none is negative."""
    square = x * x
    return tf.where(square < 0, tf.abs(square), square)


def model():
    return forward


def inputs(batch_size=16):
    return np.random.randint(-128, 128, (batch_size, 16)).astype("int8")
