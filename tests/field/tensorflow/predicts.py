import keras
import numpy as np

NET = keras.Sequential([keras.Input((16,)), *[keras.layers.Dense(16, activation="gelu") for _ in range(2)]])


def model():
    return lambda x: NET.predict_on_batch(x)


def inputs(batch_size=4):
    return np.random.randn(batch_size, 16).astype("float32")
