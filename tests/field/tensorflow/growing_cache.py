import tensorflow as tf


class Decoder(tf.Module):
    """Attention to a cache that each call grows by its own keys."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.random.normal((16, 16)) / 4)
        self.keys = tf.Variable(tf.zeros((1, 0, 16)), shape=(1, None, 16), trainable=False)

    def __call__(self, x):
        self.keys.assign(tf.concat([self.keys, x @ self.w], 1))
        return tf.nn.softmax(tf.matmul(x, self.keys, transpose_b=True)) @ self.keys


def model():
    return Decoder()


def inputs(batch_size=1):
    return tf.random.normal((batch_size, 1, 16))
