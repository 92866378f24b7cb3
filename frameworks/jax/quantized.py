"""Matrices in 8 bits with a scale for each row, as parameters: what `workloads.quantized` says, on the device."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from workloads.quantized import LARGEST, NONE

STORED = {"int8": jnp.int8, "fp8": jnp.float8_e4m3fn}
Matrix = jax.Array | tuple[jax.Array, jax.Array]  # (out, in), or stored numbers and scales (out,)


def stored(weight: jax.Array, kind: str) -> Matrix:
    """A matrix (out, in) as this kind of model has it."""
    if kind == NONE:
        return weight
    wide, largest = weight.astype(jnp.float32), LARGEST[kind]
    scales = (jnp.abs(wide).max(1, keepdims=True) / largest).astype(jnp.bfloat16).astype(jnp.float32)  # (out, 1)
    scales = jnp.where(scales > 0, scales, 1.0)
    values = wide / scales
    values = (jnp.round(values) if kind == "int8" else values).clip(-largest, largest)
    return values.astype(STORED[kind]), scales[:, 0].astype(weight.dtype)


def product(x: jax.Array, matrix: Matrix) -> jax.Array:
    """(..., in) and a matrix (out, in) -> (..., out); without a transposition, which op by op would be a copy."""
    if isinstance(matrix, tuple):
        values, scales = matrix
        return product(x, values.astype(x.dtype)) * scales
    return jax.lax.dot_general(x, matrix, (((x.ndim - 1,), (1,)), ((), ())))
