import tensorflow as tf


def model():
    return 3


def inputs(batch_size=4):
    return tf.ones((batch_size, 8))
