"""Matrices of linear layers: how they are stored, as in `workloads.matrices`, and how products are written."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import nn

from workloads.matrices import NONE, SUM, quantized
from workloads.rounding import stored as rounded

STORED = {"int8": "int8", "fp8": "float8_e4m3fn"}
ROUNDED = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


class Linear(nn.Layer):
    """Made of a matrix (out, in), float32, as Paddle's default type holds it; stored as (in, out). Without a bias.

    `kind`: whether it is in 8 bits, with a scale for each output channel.
    """

    def __init__(self, weight: np.ndarray, kind: str, form: str):
        super().__init__()
        dtype, self.form, self.scaled = paddle.get_default_dtype(), form, kind != NONE
        if not self.scaled:
            self.register_buffer("stored", paddle.to_tensor(np.ascontiguousarray(weight.T), dtype))
        else:
            values, scales = quantized(rounded(weight, ROUNDED[dtype]), kind)
            self.register_buffer("stored", paddle.to_tensor(np.ascontiguousarray(values.T)).cast(STORED[kind]))
            self.register_buffer("scales", paddle.to_tensor(scales[:, 0], dtype))

    def forward(self, x):
        """Map (..., in) -> (..., out)."""
        if not self.scaled:
            return product(x, self.stored, self.form)
        return product(x, self.stored.cast(x.dtype), self.form) * self.scales


def product(x, matrix, form: str, transposed: bool = False):
    """Map (..., in) and a matrix (in, out), or (out, in) where it is `transposed` -> (..., out).

    Rows of one a sequence, (B, in), are multiplied in this form; those of prompts, (B, T, in), as matrices.
    """
    if form == SUM and x.ndim == 2:
        summed = 2 if transposed else 1
        wide = x.astype("float32").unsqueeze(3 - summed) * matrix.astype("float32")  # (B, in, out) or (B, out, in)
        return wide.sum(summed).astype(x.dtype)
    return paddle.matmul(x, matrix, transpose_y=transposed)
