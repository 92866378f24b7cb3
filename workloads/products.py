"""How a product of one row a sequence with a matrix is written in a model."""

from __future__ import annotations

from workloads.spec import Parameter

MATMUL, SUM = "matmul", "sum"
PRODUCT = Parameter(
    "product", "product", MATMUL, "products of one row per sequence, as in decoding: matrix products (matmul), or a "
    "multiplication and a sum in float32 (sum)",
    choices=(MATMUL, SUM), implementations=("plain",),
)  # fmt: skip
