import tempfile

import numpy as np
import tensorflow as tf


class Net(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec((None, 8))])
    def __call__(self, x):
        return tf.tanh(x) * 2.0


with tempfile.TemporaryDirectory() as folder:
    tf.saved_model.save(Net(), folder)
    LOADED = tf.saved_model.load(folder)


def model():
    """A SavedModel behind a plain function."""
    return lambda x: LOADED(x)


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
