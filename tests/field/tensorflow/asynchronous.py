import tensorflow as tf

tf.config.experimental.set_synchronous_execution(False)  # left on


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = tf.Variable(tf.random.normal((64, 64)) / 8)

    def __call__(self, x):
        for _ in range(4):
            x = tf.tanh(x @ self.w)
        return x


def model():
    return Net()


def inputs(batch_size=8):
    return tf.random.normal((batch_size, 64))
