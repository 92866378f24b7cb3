import keras
import numpy as np

keras.mixed_precision.set_global_policy("mixed_bfloat16")


def model():
    x = keras.Input((64,))
    y = keras.layers.Dense(8, dtype="float32")(keras.layers.Dense(256, activation="gelu")(x))
    return keras.Model(x, y)


def inputs(batch_size=8):
    return np.random.randn(batch_size, 64).astype("float32")
