"""Additions so small that their arithmetic costs nothing: what is left is what an operator costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workloads.spec import BYTES_PER_VALUE, Arrays, Cost, OperatorCost, Parameter, Parameters, Weights, Workload


@dataclass(frozen=True)
class OpOverhead(Workload):
    """`x = x + up`, `x = x + down` in turn, each on the last one's result; `items_per_s` counts additions.

    Both terms are weights, so that no compiler can see that they cancel. They keep x a small whole number, which is
    exact in every dtype however long the chain is.
    """

    def weight_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        return {"up": (1,), "down": (1,)}

    def seeded_weights(self, parameters: Parameters, seed: int) -> Arrays:
        return {"up": np.ones((1,), np.float32), "down": -np.ones((1,), np.float32)}

    def inputs(self, parameters: Parameters, seed: int) -> Arrays:
        values = np.random.default_rng(seed).integers(1, 16, int(parameters["elements"]))
        return {"x": values.astype(np.float32)}

    def reference(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> Arrays:
        x, terms = inputs["x"], (weights["up"], weights["down"])  # (N,), (1,) each
        for index in range(int(parameters["additions"])):
            x = x + terms[index % 2]  # (N,)
        return {"output": x}

    def cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        elements, additions = int(parameters["elements"]), int(parameters["additions"])
        width = BYTES_PER_VALUE[dtype]
        once = width * (2 * elements + 1)
        return Cost(
            (OperatorCost("pointwise", additions * elements, additions * once),),
            compulsory_bytes=once + width * (min(additions, 2) - 1),
        )

    def items_per_call(self, parameters: Parameters) -> int:
        return int(parameters["additions"])


WORKLOADS = {
    "op-overhead": OpOverhead(
        name="op-overhead",
        family="op-overhead",
        implementations=("plain",),
        parameters=(
            Parameter("elements", "elements", 1, "values in the vector", implementations=("plain",)),
            Parameter("additions", "additions", 100, "dependent additions a call", implementations=("plain",)),
        ),
        tolerance={"fp32": 0.0, "tf32": 0.0, "bf16": 0.0, "fp16": 0.0},
    )
}
