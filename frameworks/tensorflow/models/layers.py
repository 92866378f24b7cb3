"""Layers that several models share, and the types they compute in."""

from __future__ import annotations

from dataclasses import dataclass

import tensorflow as tf
from tensorflow.python.util import _pywrap_util_port

from frameworks.adapter import DTYPES, Unsupported
from measurement.cells import Cell
from workloads.images import pixels
from workloads.spec import Arrays


@dataclass(frozen=True)
class Types:
    """Dtypes of variables and of computation; the two differ in mixed-precision training alone."""

    variables: tf.DType
    compute: tf.DType

    @classmethod
    def for_cell(cls, cell: Cell) -> Types:
        """Return a cell's types."""
        compute = tf.as_dtype(DTYPES[cell.dtype])
        return cls(tf.float32 if cell.pass_name == "training" else compute, compute)

    def cast(self, x: tf.Tensor | tf.Variable) -> tf.Tensor | tf.Variable:
        """Return `x` in the computing dtype."""
        return x if self.variables == self.compute else tf.cast(x, self.compute)


class Linear(tf.Module):
    """`x @ kernel + bias` on (rows, in); checkpoints store the kernel as (out, in), TensorFlow users as (in, out)."""

    def __init__(self, weights: Arrays, name: str, types: Types):
        super().__init__()
        bias = weights.get(f"{name}.bias")
        self.kernel = tf.Variable(weights[f"{name}.weight"].T, dtype=types.variables)
        self.bias = None if bias is None else tf.Variable(bias, dtype=types.variables)
        self.types = types

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        y = tf.matmul(x, self.types.cast(self.kernel))
        return y if self.bias is None else tf.nn.bias_add(y, self.types.cast(self.bias))


class LayerNorm(tf.Module):
    """Layer normalisation from `tf.nn`'s parts, as Keras does it: TensorFlow has no operator for it.

    In float32 whatever the dtype, since `tf.nn.moments` would take bfloat16's statistics in bfloat16.
    """

    def __init__(self, weights: Arrays, name: str, epsilon: float, types: Types):
        super().__init__()
        bias = weights.get(f"{name}.bias")
        self.scale = tf.Variable(weights[f"{name}.weight"], dtype=types.variables)
        self.offset = None if bias is None else tf.Variable(bias, dtype=types.variables)
        self.epsilon = epsilon

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        y = tf.cast(x, tf.float32)
        mean, variance = tf.nn.moments(y, axes=-1, keepdims=True)  # (rows, 1)
        offset = None if self.offset is None else tf.cast(self.offset, tf.float32)
        scale = tf.cast(self.scale, tf.float32)
        return tf.cast(tf.nn.batch_normalization(y, mean, variance, offset, scale, self.epsilon), x.dtype)


class Convolution(tf.Module):
    """A convolution of images in either layout; kernels are (k, k, in, out) here, whatever the layout."""

    def __init__(self, weights: Arrays, name: str, stride: int, padding: int, layout: str, types: Types):
        super().__init__()
        bias = weights.get(f"{name}.bias")
        self.kernel = tf.Variable(weights[f"{name}.weight"].transpose(2, 3, 1, 0), dtype=types.variables)
        self.bias = None if bias is None else tf.Variable(bias, dtype=types.variables)
        self.stride, self.padding, self.layout, self.types = stride, padding, layout, types

    def __call__(self, x: tf.Tensor) -> tf.Tensor:
        kernel, around = self.types.cast(self.kernel), _around(self.padding, self.layout)
        y = tf.nn.conv2d(x, kernel, self.stride, around, data_format=self.layout.upper())
        return y if self.bias is None else tf.nn.bias_add(y, self.types.cast(self.bias), self.layout.upper())


def refuse_channels_first(cell: Cell, dtype: tf.DType) -> None:
    """Raise `Unsupported` where TensorFlow's own kernels for the CPU lack a convolution in NCHW; those of XLA do not.

    oneDNN's have it, in the dtypes that it computes in on this CPU, but its gradients do not take explicit padding.
    """
    lacking = "gradients of convolutions with explicit padding"
    if cell.pass_name != "training":
        pixel = tf.zeros((1, 1, 1, 1), dtype)
        try:
            tf.nn.conv2d(pixel, pixel, 1, [[0, 0]] * 4, "NCHW")
            return
        except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError):
            onednn = _pywrap_util_port.IsMklEnabled()
        without = "convolutions without oneDNN (TF_ENABLE_ONEDNN_OPTS=1 asks for it)"
        lacking = f"{cell.dtype} convolutions" if onednn else without
    raise Unsupported(
        f"TensorFlow's {lacking} need channels last on this CPU, except in function-xla: set LAYOUT=nhwc or "
        "MODE=function-xla."
    )


def max_pool(x: tf.Tensor, size: int, stride: int, padding: int, layout: str) -> tf.Tensor:
    """Return the largest of each window of pixels, none of which is negative.

    With zeros around, as in Keras' own networks, since with XLA TensorFlow refuses one that pads by itself.
    """
    return tf.nn.max_pool2d(tf.pad(x, _around(padding, layout)), size, stride, "VALID", layout.upper())


def _around(padding: int, layout: str) -> list[list[int]]:
    return [[padding, padding] if axis in pixels(layout) else [0, 0] for axis in range(4)]


def lengths(x: tf.Tensor) -> list[int | tf.Tensor]:
    """Return the length of each axis: a number where the shape is known when traced, else a scalar tensor."""
    return [tf.shape(x)[axis] if length is None else length for axis, length in enumerate(x.shape)]
