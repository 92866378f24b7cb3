"""The fused attention operator: which kernel it is here, tried before anything is measured."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from frameworks.adapter import Unsupported
from measurement.cells import Cell
from workloads.spec import Workload


def fused(attend: Callable, workload: Workload, cell: Cell, dtype: np.dtype) -> tuple[Callable, str]:
    """`attend` with its kernel as first argument filled in, and what it is. Raises `Unsupported` where it is refused.

    `attend(kernel, q, k, v, ...)` takes heads of (B, S, nh, hs), and a mask (B, S) where the cell has one.
    """
    # cuDNN's kernel takes 16-bit types only; `xla` is the same operator composed of XLA's own.
    kernel = "cudnn" if cell.device_kind == "gpu" and cell.dtype in ("bf16", "fp16") else "xla"
    detail = f"jax.nn.dot_product_attention implementation={kernel}"
    batch, length = int(cell.parameter("batch_size")), int(cell.parameter("seq_len"))
    head = jax.ShapeDtypeStruct((batch, length, workload.heads, workload.hidden // workload.heads), dtype)
    masks = [jax.ShapeDtypeStruct((batch, length), jnp.int32)] if cell.parameter("mask") == "full" else []

    def chosen(*arguments):
        return attend(kernel, *arguments)

    try:
        # Lowered, not only traced: that is where a dot product the backend lacks is refused (fp16 on the CPU).
        jax.jit(chosen).lower(head, head, head, *masks)
    except (RuntimeError, ValueError, NotImplementedError) as error:
        raise Unsupported(f"{detail} refuses this shape or device: {error}") from error
    return chosen, detail
