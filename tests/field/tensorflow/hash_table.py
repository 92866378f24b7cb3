import tensorflow as tf


class Net(tf.Module):
    """Looks up embeddings of ids in a table that can grow, of whose results a graph knows no rank."""

    def __init__(self):
        super().__init__()
        self.table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, tf.zeros(16))
        self.table.insert(tf.range(100, dtype=tf.int64), tf.random.normal((100, 16)))
        self.w = tf.Variable(tf.random.normal((16, 16)) / 4)

    def __call__(self, ids):
        rows = tf.nn.relu(self.table.lookup(ids))
        return tf.tanh(tf.reduce_mean(rows, 1) @ self.w)


def model():
    return Net()


def inputs(batch_size=4):
    return tf.random.uniform((batch_size, 6), 0, 120, tf.int64)
