import numpy as np
import tensorflow as tf


def model():
    return lambda x: x @ tf.random.stateless_normal((8, 8), seed=(1, 2), dtype=x.dtype)


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
