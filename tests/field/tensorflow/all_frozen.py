import keras
import numpy as np
import tensorflow as tf


def model():
    layers = keras.Sequential([keras.Input((64,)), keras.layers.Dense(10)])
    layers.trainable = False
    return lambda x: layers(x)


def inputs(batch_size=8):
    return np.random.randn(batch_size, 64).astype("float32")


def loss(output):
    return tf.reduce_mean(tf.square(output - 1.0))
