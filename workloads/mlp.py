"""A plain MLP: blocks of matmul, layer norm and ReLU. No published model library has one, so it is `plain` only."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from workloads.reference import layer_norm, linear
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

LAYER_NORM_EPSILON = 1e-5


@dataclass(frozen=True)
class Mlp(Workload):
    """`depth` blocks of `relu(layer_norm(x @ W.T + b))`, each `width` wide."""

    def weight_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        width = int(parameters["width"])
        shapes: dict[str, tuple[int, ...]] = {}
        for layer in range(int(parameters["depth"])):
            shapes[f"layers.{layer}.linear.weight"] = (width, width)
            shapes[f"layers.{layer}.linear.bias"] = (width,)
            shapes[f"layers.{layer}.norm.weight"] = (width,)
            shapes[f"layers.{layer}.norm.bias"] = (width,)
        return shapes

    def seeded_weights(self, parameters: Parameters, seed: int) -> Arrays:
        """Draw linear weights as He et al. 2015 (deviation sqrt(2 / width)); norms near 1, biases near 0."""
        rng = np.random.default_rng(seed)
        scale = np.float32(math.sqrt(2 / int(parameters["width"])))
        weights = {}
        for name, shape in self.weight_shapes(parameters).items():
            draw = rng.standard_normal(shape, dtype=np.float32)
            weights[name] = draw * scale if name.endswith("linear.weight") else draw * np.float32(0.02)
            if name.endswith("norm.weight"):
                weights[name] += 1
        return weights

    def inputs(self, parameters: Parameters, seed: int) -> Arrays:
        shape = (int(parameters["batch_size"]), int(parameters["width"]))
        return {"x": np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)}

    def reference(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> Arrays:
        x = inputs["x"]  # (B, W)
        for layer in range(int(parameters["depth"])):
            x = linear(x, weights, f"layers.{layer}.linear")  # (B, W)
            norm = f"layers.{layer}.norm"
            x = layer_norm(x, weights[f"{norm}.weight"], weights[f"{norm}.bias"], LAYER_NORM_EPSILON)
            x = np.maximum(x, 0)
        return {"output": x}

    def cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        batch, width, depth = (int(parameters[name]) for name in ("batch_size", "width", "depth"))
        states, w = batch * width, BYTES_PER_VALUE[dtype]
        flops, traffic = linear_cost(batch, width, width, w)
        return Cost(
            operators=(
                OperatorCost("matmul", depth * flops, depth * traffic),
                OperatorCost("normalisation", depth * 7 * states, depth * 2 * w * states),
                OperatorCost("pointwise", depth * 2 * states, depth * 2 * w * states),  # a product adds its bias itself
            ),
            compulsory_bytes=w * (depth * (width * width + 3 * width) + 2 * states),
        )

    def training_inputs(self, parameters: Parameters, seed: int) -> Arrays:
        """Return rows (B, W) and target outputs (B, W)."""
        inputs = self.inputs(parameters, seed)
        target = np.random.default_rng([seed, 1]).standard_normal(inputs["x"].shape, dtype=np.float32)
        return inputs | {"target": target}

    def loss(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> np.ndarray:
        """Return the mean squared error."""
        return np.square(self.reference(parameters, weights, inputs)["output"] - inputs["target"]).mean()

    def training_forward_cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        values = int(parameters["batch_size"]) * int(parameters["width"])
        return self.cost(parameters, dtype).with_loss(values, BYTES_PER_VALUE[dtype])

    def weight_parameters(self, parameters: Parameters) -> Parameters:
        return {name: parameters[name] for name in ("width", "depth")}


WORKLOADS = {
    "mlp": Mlp(
        name="mlp",
        family="mlp",
        implementations=("plain",),
        parameters=(
            Parameter("batch_size", "batch", 1, "rows per call", implementations=("plain",)),
            Parameter("width", "width", 1024, "values per row", implementations=("plain",)),
            Parameter("depth", "depth", 8, "blocks", implementations=("plain",)),
        ),
        passes=("inference", "training"),
        tolerance={"fp32": 5e-6, "tf32": 5e-3, "bf16": 3e-2, "fp16": 5e-3},
    )
}
