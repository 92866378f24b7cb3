"""One product with a square matrix: of another, for peak arithmetic (`peak_tflops`), or of a single row.

A product of one row reads each weight for two operations, like every linear layer that generates a token at batch 1. It
is a separate routine in most libraries (GEMV), and some run it far below the memory's bandwidth.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from workloads.spec import (
    BYTES_PER_VALUE,
    Arrays,
    Cost,
    OperatorCost,
    Parameter,
    Parameters,
    Weights,
    Workload,
    linear_cost,
)


@dataclass(frozen=True)
class Matmul(Workload):
    """`x @ weight.T` with a `size` x `size` weight, and as many rows of `x` or a single one."""

    one_row: bool = False

    def rows(self, parameters: Parameters) -> int:
        """Return the rows of `x`."""
        return 1 if self.one_row else int(parameters["size"])

    def weight_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        size = int(parameters["size"])
        return {"weight": (size, size)}

    def seeded_weights(self, parameters: Parameters, seed: int) -> Arrays:
        """Return the weight (K, N), scaled so that the product's values have order 1."""
        shape = self.weight_shapes(parameters)["weight"]
        draw = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
        return {"weight": draw * np.float32(1 / math.sqrt(shape[0]))}

    def inputs(self, parameters: Parameters, seed: int) -> Arrays:
        shape = (self.rows(parameters), int(parameters["size"]))
        return {"x": np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)}

    def reference(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> Arrays:
        return {"output": inputs["x"] @ weights["weight"].T}

    def cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        size = int(parameters["size"])
        flops, traffic = linear_cost(self.rows(parameters), size, size, BYTES_PER_VALUE[dtype])
        return Cost((OperatorCost("matmul", flops, traffic),), compulsory_bytes=traffic)

    def weight_parameters(self, parameters: Parameters) -> Parameters:
        return dict(parameters)


def _matmul(name: str, size: int, one_row: bool) -> Matmul:
    return Matmul(
        name=name,
        family="matmul",
        one_row=one_row,
        implementations=("plain",),
        input_sets=1,
        parameters=(Parameter("size", "size", size, "rows and columns", implementations=("plain",)),),
        tolerance={"fp32": 5e-6, "tf32": 3e-3, "bf16": 1e-2, "fp16": 2e-3},
    )


WORKLOADS = {"matmul": _matmul("matmul", 2048, one_row=False), "matvec": _matmul("matvec", 6144, one_row=True)}
