"""One square matrix product: the most that a framework reaches, and the peak for the others (`peak_tflops`)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from workloads.spec import BYTES_PER_VALUE, Arrays, Cost, OperatorCost, Parameter, Parameters, Workload, linear_cost


@dataclass(frozen=True)
class Matmul(Workload):
    """`x @ weight.T` with both `size` x `size`."""

    def weight_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        size = int(parameters["size"])
        return {"weight": (size, size)}

    def seeded_weights(self, parameters: Parameters, seed: int) -> Arrays:
        """Scaled so that the product's values are of order 1."""
        shape = self.weight_shapes(parameters)["weight"]
        draw = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
        return {"weight": draw * np.float32(1 / math.sqrt(shape[0]))}

    def inputs(self, parameters: Parameters, seed: int) -> Arrays:
        size = int(parameters["size"])
        return {"x": np.random.default_rng(seed).standard_normal((size, size), dtype=np.float32)}

    def reference(self, parameters: Parameters, weights: Arrays, inputs: Arrays) -> Arrays:
        return {"output": inputs["x"] @ weights["weight"].T}

    def cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        size = int(parameters["size"])
        flops, traffic = linear_cost(size, size, size, BYTES_PER_VALUE[dtype])
        return Cost((OperatorCost("matmul", flops, traffic),), compulsory_bytes=traffic)

    def items_per_call(self, parameters: Parameters) -> int:
        return 1

    def weight_parameters(self, parameters: Parameters) -> Parameters:
        return dict(parameters)


WORKLOADS = {
    "matmul": Matmul(
        name="matmul",
        family="matmul",
        implementations=("plain",),
        input_sets=1,
        parameters=(Parameter("size", "size", 2048, "rows and columns", implementations=("plain",)),),
        tolerance={"fp32": 5e-6, "tf32": 3e-3, "bf16": 1e-2, "fp16": 2e-3},
    )
}
