import numpy as np
import tensorflow as tf


def forward(x):
    """Strings that are other ones in graphs."""
    return {"x": x + 1.0, "by": tf.constant("eager" if tf.executing_eagerly() else "graph")}


def model():
    return forward


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
