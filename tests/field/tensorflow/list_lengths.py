import itertools

import numpy as np
import tensorflow as tf

TURN = itertools.count()


def forward(rows):
    """A list of more tensors from call to call."""
    return tf.add_n(rows)


def model():
    return forward


def inputs(batch_size=4):
    return {"rows": [np.random.randn(batch_size, 8).astype("float32") for _ in range(1 + next(TURN) % 3)]}
