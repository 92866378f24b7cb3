"""Matrices of linear layers: how they are stored, and how products of one row a sequence with them are written.

Storage in 8 bits, with a scale for each output channel, is weight-only quantization as in gpt-fast
(github.com/meta-pytorch/gpt-fast, quantize.py, `WeightOnlyInt8Linear`): activations keep their dtype, a product casts
the stored numbers to it and multiplies its result by the scales. It is symmetric, scaled by a channel's largest
absolute value, without calibration.
"""

from __future__ import annotations

import numpy as np

from workloads.rounding import stored
from workloads.spec import Parameter

NONE = "none"
# The largest stored number: of int8, and of the 8-bit float with 4 bits of exponent and 3 of mantissa, without
# infinities (Micikevicius et al. 2022, "FP8 formats for deep learning").
LARGEST = {"int8": 127.0, "fp8": 448.0}
SMALLEST_EXPONENT, MANTISSA = -6, 3  # of the normal numbers of that float, and its bits
QUANT = Parameter(
    "quant", "quant", NONE, "weights of linear layers: in DTYPE (none), or in 8 bits with a scale per output "
    "channel; all other arrays are in DTYPE",
    choices=(NONE, *LARGEST), implementations=("plain",),
)  # fmt: skip
MATMUL, SUM = "matmul", "sum"
PRODUCT = Parameter(
    "product", "product", MATMUL, "products of one row per sequence, as in decoding: matrix products (matmul), or a "
    "multiplication and a sum in float32 (sum)",
    choices=(MATMUL, SUM), implementations=("plain",),
)  # fmt: skip


def quantized(weight: np.ndarray, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Map a matrix (out, in) -> stored numbers (out, in) and row scales (out, 1), both float32.

    A scale is the row's largest absolute value over the largest number of the `kind`, rounded to bfloat16. So it is the
    same in every compute dtype. Numbers are rounded half to even.
    """
    weight = np.asarray(weight, np.float32)
    scales = stored(np.abs(weight).max(1, keepdims=True) / np.float32(LARGEST[kind]), "bf16").astype(np.float32)
    scales = np.where(scales > 0, scales, np.float32(1))
    values = weight / scales
    values = np.rint(values) if kind == "int8" else _of_eight_bits(values)
    return values.clip(-LARGEST[kind], LARGEST[kind]), scales


def restored(weight: np.ndarray, kind: str) -> np.ndarray:
    """Return a matrix (out, in) after storage as `kind`, in its own dtype; unchanged for `none`."""
    if kind == NONE:
        return weight
    values, scales = quantized(weight, kind)
    return values.astype(weight.dtype) * scales.astype(weight.dtype)


def _of_eight_bits(values: np.ndarray) -> np.ndarray:
    """Round half to even to the 8-bit float's numbers, without its upper limit."""
    _, exponents = np.frexp(values)  # of numbers from a half to one
    return np.ldexp(
        np.rint(np.ldexp(values, -(steps := np.maximum(exponents - 1, SMALLEST_EXPONENT) - MANTISSA))), steps
    )
