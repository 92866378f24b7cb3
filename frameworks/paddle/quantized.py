"""Linear layers whose matrix lies in 8 bits, with a scale for each output channel."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import nn

from workloads.quantized import quantized
from workloads.rounding import stored as rounded

STORED = {"int8": "int8", "fp8": "float8_e4m3fn"}
ROUNDED = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


class Linear(nn.Layer):
    """Made of a matrix (out, in), float32, as Paddle's default type holds it; stored as (in, out). Without a bias."""

    def __init__(self, weight: np.ndarray, kind: str):
        super().__init__()
        dtype = paddle.get_default_dtype()
        values, scales = quantized(rounded(weight, ROUNDED[dtype]), kind)
        self.register_buffer("stored", paddle.to_tensor(np.ascontiguousarray(values.T)).cast(STORED[kind]))
        self.register_buffer("scales", paddle.to_tensor(scales[:, 0], dtype))

    def forward(self, x):
        """(..., in) -> (..., out)."""
        return paddle.matmul(x, self.stored.cast(x.dtype)) * self.scales
