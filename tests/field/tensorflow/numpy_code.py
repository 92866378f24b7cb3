import numpy as np
import tensorflow as tf


def model():
    weight = np.random.randn(64, 64).astype("float32") / 8
    return lambda x: x @ weight.astype("float32")


def inputs(batch_size=2):
    return tf.random.normal((batch_size, 64))
