"""Matrices of linear layers: how they are stored, as in `workloads.matrices`, and how products are written."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from workloads.matrices import NONE, SUM, quantized
from workloads.rounding import stored as rounded

STORED = {"int8": tf.int8, "fp8": tf.dtypes.experimental.float8_e4m3fn}
ROUNDED = {tf.float32: "fp32", tf.bfloat16: "bf16", tf.float16: "fp16"}


class Matrix(tf.Module):
    """In 8 bits, with a scale for each output channel; stored as (in, out).

    Made of a matrix (out, in), float32, as the dtype that is computed with holds it.
    """

    def __init__(self, weight: np.ndarray, kind: str, dtype: tf.DType):
        super().__init__()
        values, scales = quantized(rounded(weight, ROUNDED[dtype]), kind)
        self.stored = tf.Variable(tf.cast(np.ascontiguousarray(values.T), STORED[kind]), trainable=False)
        self.scales = tf.Variable(scales[:, 0], dtype=dtype, trainable=False)


def stored(weight: np.ndarray, kind: str, dtype: tf.DType) -> tf.Variable | Matrix:
    """Return a matrix (out, in) as this kind of model has it: (in, out)."""
    return tf.Variable(weight.T, dtype=dtype, trainable=False) if kind == NONE else Matrix(weight, kind, dtype)


def product(x: tf.Tensor, matrix: tf.Variable | tf.Tensor | Matrix, form: str, transposed: bool = False) -> tf.Tensor:
    """Map (rows, in) and a matrix (in, out), or (out, in) where `transposed` -> (rows, out), written in this form."""
    if isinstance(matrix, Matrix):
        return product(x, tf.cast(matrix.stored, x.dtype), form) * matrix.scales
    if form == SUM:
        summed = 2 if transposed else 1
        x_wide = tf.expand_dims(tf.cast(x, tf.float32), 3 - summed)  # (rows, in, 1) or (rows, 1, in)
        return tf.cast(tf.reduce_sum(x_wide * tf.cast(matrix, tf.float32), axis=summed), x.dtype)
    return tf.matmul(x, matrix, transpose_b=transposed)
