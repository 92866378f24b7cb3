import numpy as np
import tensorflow as tf


def model():
    layers = tf.keras.layers
    policy = tf.keras.mixed_precision.Policy("mixed_bfloat16")
    return tf.keras.Sequential([layers.Input((8,)), layers.Dense(64, "gelu", dtype=policy), layers.Dense(8)])


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
