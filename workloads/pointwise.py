"""Pointwise operators on a vector: bandwidth-bound on a large one when few or unfused, all overhead on a tiny one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workloads.spec import BYTES_PER_VALUE, Arrays, Cost, OperatorCost, Parameter, Parameters, Weights, Workload

# Exact in every dtype for any number of factors.
FACTOR = np.float32(-1)


@dataclass(frozen=True)
class OnVector(Workload):
    """`repeat` pointwise operators on one vector; without weights unless a workload adds some."""

    transcendental: bool = False  # the operators

    def weight_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        return {}

    def seeded_weights(self, parameters: Parameters, seed: int) -> Arrays:
        return {}

    def inputs(self, parameters: Parameters, seed: int) -> Arrays:
        return {"x": np.random.default_rng(seed).standard_normal(int(parameters["elements"]), dtype=np.float32)}

    def cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        elements, repeat = int(parameters["elements"]), int(parameters.get("repeat", 1))
        weights = sum(int(np.prod(shape)) for shape in self.weight_shapes(parameters).values())
        width = BYTES_PER_VALUE[dtype]
        once = 2 * width * elements
        return Cost(
            (OperatorCost("pointwise", repeat * elements, repeat * once, repeat * elements * self.transcendental),),
            compulsory_bytes=once + width * weights,
        )


@dataclass(frozen=True)
class PointwiseChain(OnVector):
    """`x = x * factor`, `repeat` times. The factor is a weight: compilers merge multiplications by constants."""

    def weight_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        return {"factor": (1,)}

    def seeded_weights(self, parameters: Parameters, seed: int) -> Arrays:
        return {"factor": np.full((1,), FACTOR)}

    def reference(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> Arrays:
        # The power at once: a thousand multiplications of a GPU's vector would take NumPy a minute.
        power = np.float64(weights["factor"][0]) ** int(parameters["repeat"])
        return {"output": (inputs["x"] * power).astype(inputs["x"].dtype)}  # (N,)


@dataclass(frozen=True)
class FusedCos(OnVector):
    """`x = cos(x)`, `repeat` times. Two in one kernel move as much memory as one."""

    def reference(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> Arrays:
        x = inputs["x"]  # (N,)
        for _ in range(int(parameters["repeat"])):
            x = np.cos(x)  # (N,)
        return {"output": x}


@dataclass(frozen=True)
class Stream(OnVector):
    """`x + x`: as much memory as a framework's own operator moves, counted like Copy of McCalpin's STREAM.

    One operand under two names. A broadcast factor takes slower kernels in some frameworks. The product with a
    constant, or a copy, may need no work at all.
    """

    def reference(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> Arrays:
        return {"output": inputs["x"] + inputs["x"]}  # (N,)


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


_ELEMENTS = Parameter("elements", "elements", 1 << 24, "values in the vector", implementations=("plain",))


def _repeat(default: int, what: str, maximum: int) -> Parameter:
    return Parameter("repeat", "operators", default, what, maximum=maximum, implementations=("plain",))


_on_vector: dict[str, Any] = {
    "implementations": ("plain",),
    "input_sets": 1,
    "tolerance": {"fp32": 1e-6, "tf32": 1e-6, "bf16": 1e-2, "fp16": 2e-3},
}

WORKLOADS: dict[str, Workload] = {
    workload.name: workload
    for workload in (
        PointwiseChain(
            "pointwise-chain",
            "pointwise-chain",
            parameters=(_ELEMENTS, _repeat(1, "multiplications or cosines, one after the other", 4096)),
            **_on_vector,
        ),
        FusedCos(
            "fused-cos",
            "fused-cos",
            transcendental=True,
            parameters=(_ELEMENTS, _repeat(2, "cosines", 64)),
            **_on_vector,
        ),
        Stream("stream", "stream", parameters=(_ELEMENTS,), **_on_vector),
        OpOverhead(
            "op-overhead",
            "op-overhead",
            implementations=("plain",),
            parameters=(
                Parameter("elements", "elements", 1, "values in the vector", implementations=("plain",)),
                Parameter("additions", "additions", 100, "dependent additions a call", implementations=("plain",)),
            ),
            tolerance=dict.fromkeys(("fp32", "tf32", "bf16", "fp16"), 0.0),
        ),
    )
}
