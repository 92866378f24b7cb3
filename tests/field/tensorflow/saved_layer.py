import tempfile

import keras
import numpy as np


def model():
    with tempfile.TemporaryDirectory() as folder:
        keras.Sequential([keras.Input((16,)), keras.layers.Dense(8)]).export(folder, verbose=False)
        layer = keras.layers.TFSMLayer(folder, call_endpoint="serve")
    return keras.Sequential([keras.Input((16,)), layer])


def inputs(batch_size):
    return np.random.randn(batch_size, 16).astype("float32")
