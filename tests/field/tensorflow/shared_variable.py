import numpy as np
import tensorflow as tf

W = tf.Variable(np.random.default_rng(0).normal(size=(64, 64)).astype("float32") / 8)
CALLS = tf.Variable(0.0, trainable=False)


def forward(x):
    CALLS.assign_add(1.0)
    return tf.tanh(x @ W) + CALLS


def model():
    return forward


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")


def loss(output):
    return tf.reduce_mean(tf.square(output - 1.0))
