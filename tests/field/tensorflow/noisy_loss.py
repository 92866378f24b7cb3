import tensorflow as tf


def model():
    return tf.keras.Sequential([tf.keras.layers.Dense(8)])


def inputs(batch_size=4):
    return tf.random.normal((batch_size, 8))


def loss(output):
    return tf.reduce_mean((output - tf.random.normal(tf.shape(output))) ** 2)
