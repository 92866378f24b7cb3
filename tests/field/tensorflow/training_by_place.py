import numpy as np
import tensorflow as tf


def model():
    return lambda x, training=True: tf.nn.relu(x) if training else x * 2.0


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32"), False
