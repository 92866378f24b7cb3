"""Keras' own applications by name, with random weights, and inputs for them."""

from __future__ import annotations

import contextlib
import sys
from importlib import import_module
from typing import Any

import tensorflow as tf

from frameworks.adapter import Unsupported
from frameworks.user_file import Fault

KERAS = ("keras", "tf_keras")


class Library:
    """`keras:MobileNetV2` as a user's file is. Raises `Unsupported` for another library."""

    def __init__(self, source: str):
        library, _, self._name = source.partition(":")
        if library != "keras":
            raise Unsupported(f"{library} is no library of TensorFlow's models.")
        self._size = 224
        import keras

        keras.backend.set_image_data_format("channels_last")  # as the images are, whatever ~/.keras/keras.json says
        self._applications = keras.applications

    def call(self, function: str, **arguments: Any) -> Any:
        """What a file's `model()` or `inputs(…)` would return."""
        if function == "inputs":
            self._size = arguments["image_size"]
            return tf.random.normal((arguments["batch_size"], self._size, self._size, 3))
        make = getattr(self._applications, self._name, None)
        if not callable(make):
            known = [name for name in dir(self._applications) if name[:1].isupper()]
            raise Fault(f"keras.applications has no {self._name!r}; there are {', '.join(known[:40])}.")
        return make(weights=None, input_shape=(self._size, self._size, 3))


def installed_keras() -> list[Any]:
    """Keras 3 and Keras 2, as far as they are installed; imported, since a model may import them when it is made."""
    for name in KERAS:
        with contextlib.suppress(ImportError):
            import_module(name)
    return [sys.modules[name] for name in KERAS if name in sys.modules]
