import tensorflow as tf


def forward(x, seen):
    seen.append(x)
    return x * float(len(seen))


def model():
    return forward


def inputs(batch_size=4):
    return tf.ones(batch_size), []
