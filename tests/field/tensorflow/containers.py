import collections
import dataclasses

import numpy as np
import tensorflow as tf

Point = collections.namedtuple("Point", "x y")


class Masked(tf.experimental.ExtensionType):
    values: tf.Tensor
    scale: float


@dataclasses.dataclass(eq=False)
class Given:
    x: tf.Tensor


class Turned:
    """A class of no library, with a complex variable."""

    def __init__(self):
        self.turn = tf.Variable(tf.exp(tf.complex(0.0, tf.range(4.0))))

    def __call__(self, given, masked, sparse, *, names, options):
        assert names == ["a", "b"] and options["flag"] is True
        rows = tf.TensorArray(given.x.dtype, 2).write(0, given.x).write(1, given.x * 2.0)
        squares = tf.sparse.map_values(tf.square, sparse)
        turned = tf.complex(given.x, given.x) * self.turn
        return {"both": Point(turned, Masked(masked.values * masked.scale, 3.0)), "rows": rows.stack(), "s": squares}


def model():
    return Turned()


def inputs(batch_size=4):
    return {
        "given": Given(np.ones(4, "float32")),
        "masked": Masked(tf.ones(4), 2.0),
        "sparse": tf.sparse.from_dense(np.eye(4, dtype="float32")),
        "names": ["a", "b"],
        "options": {"flag": True},
    }
