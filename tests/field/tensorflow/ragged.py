import tensorflow as tf


class Tagger(tf.Module):
    """Sentences of several lengths in one ragged tensor, and one out."""

    def __init__(self):
        super().__init__()
        self.table = tf.Variable(tf.random.normal((100, 16)))

    def __call__(self, ids):
        return tf.ragged.map_flat_values(lambda flat: tf.tanh(tf.gather(self.table, flat)), ids)


def model():
    return Tagger()


def inputs(batch_size=3):
    return {"ids": tf.ragged.constant([list(range(n + 2)) for n in range(batch_size)])}
