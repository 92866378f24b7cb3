import tempfile

import numpy as np
import tensorflow as tf


class Net(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec((None, 8), name="x")])
    def serve(self, x):
        return {"y": tf.tanh(x) * 2.0}


with tempfile.TemporaryDirectory() as folder:
    net = Net()
    tf.saved_model.save(net, folder, signatures={"serving_default": net.serve})
    LOADED = tf.saved_model.load(folder)


class Served:
    """The signature of a SavedModel in a list."""

    def __init__(self):
        self.parts = [LOADED.signatures["serving_default"]]

    def __call__(self, x):
        return self.parts[0](x=x)["y"] + 1.0


def model():
    return Served()


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
