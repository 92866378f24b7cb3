import numpy as np
import tensorflow as tf


def model():
    """Two inputs, given as the list that `predict` takes."""
    a, b = tf.keras.Input((16,)), tf.keras.Input((8,))
    joined = tf.keras.layers.Concatenate()([tf.keras.layers.Dense(16)(a), tf.keras.layers.Dense(16)(b)])
    return tf.keras.Model([a, b], tf.keras.layers.Dense(2)(joined))


def inputs(batch_size=4):
    return ([np.random.randn(batch_size, 16), np.random.randn(batch_size, 8)],)
