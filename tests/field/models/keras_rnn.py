"""An LSTM and a GRU of Keras after an embedding."""

import keras
import numpy as np


def model():
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(1000, 32)(ids)
    x = keras.layers.LSTM(32, return_sequences=True)(x)
    return keras.Model(ids, keras.layers.Dense(4)(keras.layers.GRU(32)(x)))


def inputs(batch_size, seq_len=16):
    return np.random.randint(0, 1000, (batch_size, seq_len)).astype("int32")
