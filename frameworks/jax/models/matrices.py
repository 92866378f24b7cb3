"""Matrices of linear layers: how they are stored, as in `workloads.matrices`, and how products are written."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from workloads.matrices import LARGEST, NONE, SUM

STORED = {"int8": jnp.int8, "fp8": jnp.float8_e4m3fn}
Matrix = jax.Array | tuple[jax.Array, jax.Array]  # (out, in), or stored numbers and scales (out,)


def stored(weight: jax.Array, kind: str) -> Matrix:
    """Return a matrix (out, in) as this kind of model has it."""
    if kind == NONE:
        return weight
    wide, largest = weight.astype(jnp.float32), LARGEST[kind]
    scales = (jnp.abs(wide).max(1, keepdims=True) / largest).astype(jnp.bfloat16).astype(jnp.float32)  # (out, 1)
    scales = jnp.where(scales > 0, scales, 1.0)
    values = wide / scales
    values = (jnp.round(values) if kind == "int8" else values).clip(-largest, largest)
    return values.astype(STORED[kind]), scales[:, 0].astype(weight.dtype)


def product(x: jax.Array, matrix: Matrix, form: str) -> jax.Array:
    """Map (..., in) and a matrix (out, in) -> (..., out); without a transposition, which op by op would be a copy.

    Rows of one a sequence, (B, in), are multiplied in this form; those of prompts, (B, T, in), as matrices.
    """
    if isinstance(matrix, tuple):
        values, scales = matrix
        return product(x, values.astype(x.dtype), form) * scales
    if form == SUM and x.ndim == 2:
        wide = x[:, None].astype(jnp.float32) * matrix.astype(jnp.float32)  # (B, out, in)
        return wide.sum(-1).astype(x.dtype)
    return jax.lax.dot_general(x, matrix, (((x.ndim - 1,), (1,)), ((), ())))
