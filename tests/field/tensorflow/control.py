import tensorflow as tf

W = tf.ones((8, 8))


def forward(x):
    if tf.reduce_sum(x) > 1e9:
        return tf.nn.softmax(x)
    count = tf.constant(0.0)
    while tf.reduce_sum(count) < 3.0:
        x, count = tf.tanh(x @ W), count + 1.0
    return tf.switch_case(tf.constant(1), [lambda: x, lambda: tf.sigmoid(x), lambda: tf.nn.softmax(x)])


def model():
    return forward


def inputs(batch_size=4):
    return tf.random.normal((batch_size, 8))
