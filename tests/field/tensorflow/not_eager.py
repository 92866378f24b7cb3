import numpy as np
import tensorflow as tf

tf.compat.v1.disable_eager_execution()


def model():
    w = tf.Variable(np.random.randn(8, 8).astype("float32"))
    return lambda x: x @ w


def inputs(batch_size=8):
    return np.random.randn(batch_size, 8).astype("float32")
