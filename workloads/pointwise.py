"""A chain of multiplications of a large vector: bandwidth-bound when short or unfused, else compute-bound."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workloads.spec import Arrays, Cost, OperatorCost, Parameter, Parameters, Workload

OUTPUTS = ("output",)
# Exact in every dtype, however often it is multiplied by.
FACTOR = np.float32(-1)


@dataclass(frozen=True)
class PointwiseChain(Workload):
    """`x = x * factor`, `repeat` times. The factor is a weight: compilers merge multiplications by constants."""

    def weight_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        return {"factor": (1,)}

    def seeded_weights(self, parameters: Parameters, seed: int) -> Arrays:
        return {"factor": np.full((1,), FACTOR)}

    def inputs(self, parameters: Parameters, seed: int) -> Arrays:
        return {"x": np.random.default_rng(seed).standard_normal(int(parameters["elements"]), dtype=np.float32)}

    def reference(self, parameters: Parameters, weights: Arrays, inputs: Arrays) -> Arrays:
        x = inputs["x"]  # (N,)
        for _ in range(int(parameters["repeat"])):
            x = x * weights["factor"]  # (N,)
        return {"output": x}

    def cost(self, parameters: Parameters, bytes_per_value: int) -> Cost:
        elements, repeat = int(parameters["elements"]), int(parameters["repeat"])
        once = 2 * bytes_per_value * elements
        return Cost(
            (OperatorCost("pointwise", repeat * elements, repeat * once),), compulsory_bytes=once + bytes_per_value
        )

    def items_per_call(self, parameters: Parameters) -> int:
        return 1


WORKLOADS = {
    "pointwise-chain": PointwiseChain(
        name="pointwise-chain",
        family="pointwise-chain",
        implementations=("plain",),
        input_sets=1,
        parameters=(
            Parameter("elements", "elements", 1 << 24, "values in the vector", implementations=("plain",)),
            Parameter("repeat", "repeat", 1, "multiplications", maximum=4096, implementations=("plain",)),
        ),
        tolerance={"fp32": 1e-6, "tf32": 1e-6, "bf16": 3e-2, "fp16": 4e-3},
    )
}
