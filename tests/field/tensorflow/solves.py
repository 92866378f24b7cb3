import tensorflow as tf


def model():
    return lambda x: tf.linalg.cholesky(x @ tf.transpose(x) + tf.eye(4) * 10)


def inputs(batch_size=4):
    return tf.random.normal((4, 8))
