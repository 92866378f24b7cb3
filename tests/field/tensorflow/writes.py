import numpy as np
import tensorflow as tf


def forward(x, count):
    count.assign_add(1.0)
    return x * count


def model():
    return forward


def inputs(batch_size=4):
    return np.ones(batch_size, "float32"), tf.Variable(0.0)
