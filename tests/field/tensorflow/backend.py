import os

import tensorflow as tf

os.environ["KERAS_BACKEND"] = "jax"


def model():
    return lambda x: x + 1.0


def inputs(batch_size=4):
    return tf.random.normal((batch_size, 8))
