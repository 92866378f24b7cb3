import tensorflow as tf


class Net(tf.Module):
    """Goes through the rows of its input, which a graph reads from a list."""

    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.random.normal((8, 8)) / 3)

    def __call__(self, x):
        state = tf.zeros((1, 8))
        for row in x:
            state = tf.tanh(row[None] @ self.w + state)
        return state


def model():
    return Net()


def inputs(batch_size=4):
    return tf.random.normal((batch_size, 8))
