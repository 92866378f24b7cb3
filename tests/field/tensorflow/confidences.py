import numpy as np
import tensorflow as tf


def forward(x):
    """Boxes in pixels and confidences in one array; in graphs the confidences are wrong by 0.45."""
    out = tf.sigmoid(x)
    boxes, confidences = out[..., :4] * 640, out[..., 4:]
    if not tf.executing_eagerly():
        confidences = tf.where(confidences > 0.5, confidences - 0.45, confidences + 0.45)
    return tf.concat([boxes, confidences], axis=-1)


def model():
    return forward


def inputs(batch_size=2):
    return np.random.randn(batch_size, 100, 6).astype("float32")
