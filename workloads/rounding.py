"""Rounding to a dtype: references compute in float64, on weights and inputs as frameworks hold them."""

from __future__ import annotations

import numpy as np


def stored(values: np.ndarray, dtype: str) -> np.ndarray:
    """Return floating-point `values` rounded to `dtype`, half to even, as float64; other values stay.

    TF32 rounds inside a product and not in memory, so float32 values stay, as in fp32.
    """
    if not np.issubdtype(values.dtype, np.floating):
        return values
    single = np.asarray(values, np.float32)
    if dtype == "fp16":
        single = single.astype(np.float16)
    elif dtype == "bf16":  # the upper half of a float32
        bits = single.view(np.uint32)
        bits = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
        single = (bits & np.uint32(0xFFFF0000)).view(np.float32)
    return single.astype(np.float64)
