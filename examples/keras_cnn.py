"""A small convolutional network in Keras: `eager-vs-graph examples/keras_cnn.py --image 64,128`."""

import keras
import numpy as np


def model():
    """Return the model to be measured."""
    layers = keras.layers
    return keras.Sequential(
        [
            layers.Input((None, None, 3)),
            layers.Conv2D(32, 3, activation="relu"),
            layers.Conv2D(64, 3, strides=2, activation="relu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10),
        ]
    )


def inputs(batch_size, image_size=64):
    """Return images; `image_size` is an option of the command line as well."""
    return np.random.rand(batch_size, image_size, image_size, 3).astype("float32")
