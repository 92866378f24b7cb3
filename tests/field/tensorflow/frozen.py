import keras
import numpy as np
import tensorflow as tf


def model():
    backbone = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(64, "relu")])
    backbone.trainable = False
    head = keras.layers.Dense(10)
    head.build((None, 64))
    return lambda x: head(backbone(x, training=False))


def inputs(batch_size=8):
    return np.random.randn(batch_size, 64).astype("float32")


def loss(output):
    return tf.reduce_mean(tf.square(output - 1.0))
