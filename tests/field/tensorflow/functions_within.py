import keras
import numpy as np
import tensorflow as tf


@tf.function
def hot(x):
    return x * 2.0


class Part(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(4)
        self.shift = tf.function(lambda x: x + 1.0)

    @tf.function
    def call(self, x):
        return self.shift(self.dense(hot(x)))


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.parts = [Part()]

    def call(self, x):
        return self.parts[0](x)


def model():
    return Net()


def inputs(batch_size=4):
    return np.random.randn(batch_size, 8).astype("float32")
