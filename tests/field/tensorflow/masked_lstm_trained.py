import keras
import numpy as np


def model():
    layers = [keras.layers.Embedding(50, 16, mask_zero=True), keras.layers.LSTM(32), keras.layers.Dense(4)]
    return keras.Sequential([keras.Input((8,), dtype="int64"), *layers])


def inputs(batch_size=8):
    return np.random.randint(1, 50, (batch_size, 8)) * (np.arange(8) < 6)


def loss(output):
    return keras.ops.mean(keras.ops.square(output - 1.0))
