"""Keras' own applications by name, with random weights, and inputs for them."""

from __future__ import annotations

import contextlib
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import tensorflow as tf

from frameworks.adapter import Unsupported
from frameworks.user_file import Fault, UserFile

KERAS = ("keras", "tf_keras")
_asked: dict[str, str] = {}  # other backends that users' files name


class Library:
    """`keras:MobileNetV2` as a user's file. Raises `Unsupported` for another library."""

    def __init__(self, source: str):
        self.name = source
        library, _, self._name = source.partition(":")
        if library != "keras":
            raise Unsupported(f"{library} is not a library of TensorFlow models.")
        self._size = 224
        import keras

        keras.backend.set_image_data_format("channels_last")  # as the images are, despite ~/.keras/keras.json
        self._applications = keras.applications

    def call(self, function: str, **arguments: Any) -> Any:
        """Return the value that a file's `model()` or `inputs(…)` would return."""
        if function == "inputs":
            self._size = arguments["image_size"]
            return tf.random.normal((arguments["batch_size"], self._size, self._size, 3))
        make = getattr(self._applications, self._name, None)
        if not callable(make):
            known = [name for name in dir(self._applications) if name[:1].isupper()]
            raise Fault(f"keras.applications has no {self._name!r}; there are {', '.join(known[:40])}.")
        return make(weights=None, input_shape=(self._size, self._size, 3))


def opened(source: str, is_file: bool) -> UserFile | Library:
    """Return a user's file, or a library by name.

    Raises Unsupported for a file that needs another backend of Keras, has no eager mode, or sets threads or devices.
    """
    try:
        file = UserFile(source) if is_file else Library(source)
        if not tf.executing_eagerly():
            raise Unsupported(
                f"{Path(source).name} disables eager execution, with which graphs are compared here: remove "
                "tf.compat.v1.disable_eager_execution() from it."
            )
        return file
    except RuntimeError as error:
        if is_file and "cannot be modified after initialization" in str(error):
            raise Unsupported(
                f"{Path(source).name} sets TensorFlow's threads or devices, which the suite has set: remove that from "
                f"it; THREADS= and DEVICE= choose them here ({error})"
            ) from error
        raise
    finally:
        if is_file:  # an ImportError of another backend's framework is for that reason
            refuse_other_backends(Path(source).name)


def refuse_other_backends(file: str) -> None:
    """Raise Unsupported where a user's file has Keras 3 compute with another backend than TensorFlow.

    The variable is put back, since other files may share the process.
    """
    keras, asked = sys.modules.get("keras"), os.environ.get("KERAS_BACKEND", "tensorflow")
    if asked != "tensorflow":
        _asked[file], os.environ["KERAS_BACKEND"] = asked, "tensorflow"
    runs = keras.backend.backend() if hasattr(keras, "config") else "tensorflow"
    if file in _asked or runs != "tensorflow":
        raise Unsupported(
            f"{file} selects the Keras backend {_asked.get(file, runs)}, and only TensorFlow is measured here: "
            f"remove KERAS_BACKEND from it."
        )


def compute_in(layer: Any, dtype: str) -> None:
    """Make a layer of Keras 3 or Keras 2 compute in a dtype, whatever its policy."""
    if hasattr(layer, "_set_dtype_policy"):
        layer._set_dtype_policy(dtype)
    else:
        layer.dtype_policy = dtype


def generator() -> Any:
    """Return the state of the generator that Keras 3 draws from where no seed is given; None where there is none."""
    try:  # no part of Keras' API, which can only replace it
        from keras.src.random.seed_generator import global_seed_generator
    except ImportError:
        return None
    return global_seed_generator().state


def generators() -> tuple[type, ...]:
    """Return the classes of Keras' generators of random numbers that hold a state: of Keras 3."""
    return tuple(keras.random.SeedGenerator for keras in installed_keras() if hasattr(keras, "config"))


def installed_keras() -> list[Any]:
    """Return Keras 3 and Keras 2, as far as they are installed; imported, since a model may import them late."""
    for name in KERAS:
        with contextlib.suppress(ImportError):
            import_module(name)
    return [sys.modules[name] for name in KERAS if name in sys.modules]
