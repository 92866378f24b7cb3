"""Matrices of linear layers: how they are stored, as in `workloads.matrices`, and how products are written."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from workloads.matrices import LARGEST, NONE, SUM

STORED = {"int8": torch.int8, "fp8": torch.float8_e4m3fn}


class Matrix(nn.Module):
    """In 8 bits, with a scale for each row.

    Made of a matrix (out, in) in the dtype that is computed with, which the scales are in as well.
    """

    def __init__(self, weight: torch.Tensor, kind: str):
        super().__init__()
        wide, largest = weight.float(), LARGEST[kind]
        scales = (wide.abs().amax(1, keepdim=True) / largest).bfloat16().float()  # (out, 1)
        scales = torch.where(scales > 0, scales, 1.0)
        values = wide / scales
        values = (values.round() if kind == "int8" else values).clamp(-largest, largest)
        self.register_buffer("values", values.to(STORED[kind]))
        self.register_buffer("scales", scales[:, 0].to(weight.dtype))


def stored(weight: torch.Tensor, kind: str) -> nn.Parameter | Matrix:
    """Return a matrix (out, in) as this kind of model has it."""
    return nn.Parameter(weight, requires_grad=False) if kind == NONE else Matrix(weight, kind)


def product(x: torch.Tensor, matrix: torch.Tensor | Matrix, form: str) -> torch.Tensor:
    """Map (..., in) and a matrix (out, in) -> (..., out).

    Rows of one a sequence, (B, in), are multiplied in this form; those of prompts, (B, T, in), as matrices.
    """
    if isinstance(matrix, Matrix):
        return product(x, matrix.values.to(x.dtype), form) * matrix.scales
    if form == SUM and x.ndim == 2:
        wide = x[:, None].float() * matrix.float()  # (B, out, in)
        return wide.sum(-1).to(x.dtype)
    return F.linear(x, matrix)
