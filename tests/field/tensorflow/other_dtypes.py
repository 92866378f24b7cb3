import itertools

import numpy as np
import tensorflow as tf

KINDS, TURN = ("int64", "int32"), itertools.count()


def forward(ids):
    """Whole numbers of another width at each call."""
    return tf.reduce_sum(tf.one_hot(ids, 10), axis=1)


def model():
    return forward


def inputs(batch_size=4):
    return {"ids": np.random.randint(0, 10, (batch_size, 8)).astype(KINDS[next(TURN) % 2])}
