import keras
import numpy as np
import tensorflow as tf


class Trained(keras.layers.Layer):
    def call(self, x, training=False):
        if not training:
            raise ValueError("called for inference")
        return x


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.inner = keras.Sequential([keras.layers.Dense(64), keras.layers.BatchNormalization(), Trained()])

    def call(self, x):
        return self.inner(x)


def model():
    return Net()


def inputs(batch_size=4):
    return np.random.randn(batch_size, 64).astype("float32")


def loss(output):
    return tf.reduce_mean(tf.square(output - 1.0))
