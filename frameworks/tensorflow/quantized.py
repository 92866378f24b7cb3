"""Matrices in 8 bits with a scale for each output channel, as modules with variables."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from workloads.quantized import NONE, quantized
from workloads.rounding import stored as rounded

STORED = {"int8": tf.int8, "fp8": tf.dtypes.experimental.float8_e4m3fn}
ROUNDED = {tf.float32: "fp32", tf.bfloat16: "bf16", tf.float16: "fp16"}


class Matrix(tf.Module):
    """Made of a matrix (out, in), float32, as the dtype that is computed with holds it; stored as (in, out)."""

    def __init__(self, weight: np.ndarray, kind: str, dtype: tf.DType):
        super().__init__()
        values, scales = quantized(rounded(weight, ROUNDED[dtype]), kind)
        self.stored = tf.Variable(tf.cast(np.ascontiguousarray(values.T), STORED[kind]), trainable=False)
        self.scales = tf.Variable(scales[:, 0], dtype=dtype, trainable=False)


def stored(weight: np.ndarray, kind: str, dtype: tf.DType) -> tf.Variable | Matrix:
    """A matrix (out, in) as this kind of model has it: (in, out)."""
    return tf.Variable(weight.T, dtype=dtype, trainable=False) if kind == NONE else Matrix(weight, kind, dtype)


def product(x: tf.Tensor, matrix: tf.Variable | Matrix) -> tf.Tensor:
    """(rows, in) and a matrix (in, out) -> (rows, out)."""
    if isinstance(matrix, Matrix):
        return tf.matmul(x, tf.cast(matrix.stored, x.dtype)) * matrix.scales
    return tf.matmul(x, matrix)
