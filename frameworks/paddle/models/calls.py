"""How models are called, and tensors from NumPy."""

from __future__ import annotations

import numpy as np
import paddle
from paddle import nn

DTYPES = {"fp32": "float32", "tf32": "float32", "bf16": "bfloat16", "fp16": "float16"}


def named(model, names: tuple[str, ...]):
    """`model`, whose one or several results come under their names."""

    def call(*inputs):
        outputs = model(*inputs)
        return dict(zip(names, outputs if isinstance(outputs, (tuple, list)) else (outputs,)))  # noqa: B905 - timed

    return call


def without_gradients(model: nn.Layer):
    """`model` as inference calls it."""

    def call(*inputs):
        with paddle.no_grad():
            return model(*inputs)

    return call


def tensor(values: np.ndarray, dtype: str) -> paddle.Tensor:
    """Return a copy on the current device, floating point as `dtype`."""
    return paddle.to_tensor(values, DTYPES[dtype] if values.dtype.kind == "f" else None)
