import numpy as np
import tensorflow as tf


def forward(x):
    """Complex numbers out, whose imaginary part has another sign in graphs."""
    y = tf.signal.fft(tf.complex(x, x))
    return y if tf.executing_eagerly() else tf.math.conj(y)


def model():
    return forward


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
