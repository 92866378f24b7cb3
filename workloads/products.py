"""How a product of one row a sequence with a matrix is written in a model."""

from __future__ import annotations

from workloads.spec import Parameter

MATMUL, SUM = "matmul", "sum"
PRODUCT = Parameter(
    "product", "product", MATMUL, "one row a sequence times a matrix, as decoded tokens and all logits are computed, "
    "as a matrix product (matmul), or as a multiplication and a sum in float32 (sum)",
    choices=(MATMUL, SUM), implementations=("plain",),
)  # fmt: skip
