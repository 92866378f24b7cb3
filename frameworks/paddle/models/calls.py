"""How models are called, and tensors from NumPy and back."""

from __future__ import annotations

from typing import Any

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


def array(tensor: Any) -> np.ndarray:
    """Return the values of a tensor or of a predictor's output handle, floating point as float32."""
    if isinstance(tensor, paddle.Tensor):
        return tensor.astype("float32").numpy()
    values = tensor.copy_to_cpu()
    if values.dtype == np.uint16:  # the bits of bfloat16, the upper half of float32's
        return (values.astype(np.uint32) << 16).view(np.float32)
    return values.astype(np.float32)


def is_tensor(value: Any) -> bool:
    """Say whether a value is a tensor or a predictor's output handle."""
    return isinstance(value, paddle.Tensor) or hasattr(value, "copy_to_cpu")
