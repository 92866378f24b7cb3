"""The fused attention operator: which kernel it is here, tried before anything is measured."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from frameworks.adapter import Unsupported
from measurement.cells import Cell
from workloads.spec import Workload


def fused(
    attend: Callable, workload: Workload, cell: Cell, dtype: np.dtype, length: int | None = None
) -> tuple[Callable, str]:
    """Return `attend` with its kernel as first argument filled in, and the kernel's name for the record's `settings`.

    `attend(kernel, q, k, v, ...)` takes heads of (B, S, nh, hs), and a mask (B, S) where the cell has one; S is
    `length`, or the cell's sequence length. The kernel is cuDNN's, which takes 16-bit types only, where it takes this
    shape; `xla` is the same operator composed by XLA. Raises `Unsupported` where that is refused as well.
    """
    if cell.device_kind == "gpu" and cell.dtype in ("bf16", "fp16"):
        try:
            return _with_kernel("cudnn", attend, workload, cell, dtype, length)
        except Unsupported as refusal:
            chosen, detail = _with_kernel("xla", attend, workload, cell, dtype, length)
            return chosen, f"{detail} ({refusal})"
    return _with_kernel("xla", attend, workload, cell, dtype, length)


def _with_kernel(
    kernel: str, attend: Callable, workload: Workload, cell: Cell, dtype: np.dtype, length: int | None
) -> tuple[Callable, str]:
    detail = f"jax.nn.dot_product_attention implementation={kernel}"
    batch = int(cell.parameter("batch_size"))
    length = length or int(cell.parameter("seq_len") or cell.parameter("prompt"))
    size = workload.hidden // workload.heads
    q, k = (
        jax.ShapeDtypeStruct((batch, length, heads, size), dtype)
        for heads in (workload.heads, getattr(workload, "kv_heads", workload.heads))
    )
    masks = [jax.ShapeDtypeStruct((batch, length), jnp.int32)] if cell.parameter("mask", "none") != "none" else []

    def chosen(*arguments):
        return attend(kernel, *arguments)

    try:
        # Lowered, not only traced: that is where a dot product the backend lacks is refused (fp16 on the CPU).
        jax.jit(chosen).lower(q, k, k, *masks)
    except (RuntimeError, ValueError, NotImplementedError) as error:
        raise Unsupported(f"{detail} refuses this shape or device: {error}") from error
    return chosen, detail
