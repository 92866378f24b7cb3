"""Vision transformers (Dosovitskiy et al. 2021) as torchvision has them: pre-norm blocks, a class token; no dropout."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from workloads.images import CHANNELS, channels_first, convolution_cost, image_parameters, image_shape, images
from workloads.reference import attention, concatenated, convolution, gelu, layer_norm, linear
from workloads.spec import BYTES_PER_VALUE, Arrays, Cost, OperatorCost, Parameters, Weights, linear_cost
from workloads.training import Classifier
from workloads.transformer import (
    ATTENTION,
    cost_of_layers,
    linear_shapes,
    norm_shapes,
    normal_weights,
    tolerance,
)

LAYER_NORM_EPSILON = 1e-6
OUTPUTS = ("logits",)
_NORMS = ("ln_1.weight", "ln_2.weight", "ln.weight")


@dataclass(frozen=True)
class ViT(Classifier):
    """A vision transformer of a given size."""

    same_values: ClassVar = ("layout", "attention")

    layers: int = 12
    hidden: int = 768
    heads: int = 12
    patch: int = 16
    classes: int = 1000

    def length(self, parameters: Parameters) -> int:
        """Count positions of an image: its patches and the class token."""
        return (int(parameters["image"]) // self.patch) ** 2 + 1

    def weight_shapes(self, parameters: Parameters) -> dict[str, tuple[int, ...]]:
        h = self.hidden
        shapes = {"class_token": (1, 1, h), "conv_proj.weight": (h, CHANNELS, self.patch, self.patch)}
        shapes |= {"conv_proj.bias": (h,), "encoder.pos_embedding": (1, self.length(parameters), h)}
        for layer in range(self.layers):
            prefix = f"encoder.layers.encoder_layer_{layer}"
            shapes |= norm_shapes(f"{prefix}.ln_1", h)
            shapes |= {f"{prefix}.self_attention.in_proj_weight": (3 * h, h)}  # query, key and value
            shapes |= {f"{prefix}.self_attention.in_proj_bias": (3 * h,)}
            shapes |= linear_shapes(f"{prefix}.self_attention.out_proj", h, h)
            shapes |= norm_shapes(f"{prefix}.ln_2", h)
            shapes |= linear_shapes(f"{prefix}.mlp.0", 4 * h, h) | linear_shapes(f"{prefix}.mlp.3", h, 4 * h)
        return shapes | norm_shapes("encoder.ln", h) | linear_shapes("heads.head", self.classes, h)

    def seeded_weights(self, parameters: Parameters, seed: int) -> Arrays:
        """Draw normal weights of standard deviation 0.02; norms and biases too, to reveal a forgotten one."""
        return normal_weights(self.weight_shapes(parameters), seed, _NORMS)

    def inputs(self, parameters: Parameters, seed: int) -> Arrays:
        return images(parameters, seed)

    def reference(self, parameters: Parameters, weights: Weights, inputs: Arrays) -> Arrays:
        def norm(x: np.ndarray, name: str) -> np.ndarray:
            return layer_norm(x, weights[f"{name}.weight"], weights[f"{name}.bias"], LAYER_NORM_EPSILON)

        pixels, h = channels_first(parameters, inputs), self.hidden
        patches = convolution(pixels, weights["conv_proj.weight"], self.patch, 0)  # (B, H, n, n)
        patches = patches.reshape(len(pixels), h, -1).transpose(0, 2, 1) + weights["conv_proj.bias"]  # (B, n * n, H)
        token = weights["class_token"] + np.zeros((len(pixels), 1, 1), pixels.dtype)  # (B, 1, H)
        x = concatenated([token, patches], axis=1) + weights["encoder.pos_embedding"]  # (B, S, H)
        for layer in range(self.layers):
            prefix = f"encoder.layers.encoder_layer_{layer}"
            kernel, bias = (weights[f"{prefix}.self_attention.in_proj_{tensor}"] for tensor in ("weight", "bias"))
            qkv = norm(x, f"{prefix}.ln_1") @ kernel.T + bias  # (B, S, 3H)
            q, k, v = (qkv[:, :, i * h : (i + 1) * h] for i in range(3))  # (B, S, H)
            x = x + linear(attention(q, k, v, self.heads), weights, f"{prefix}.self_attention.out_proj")
            y = gelu(linear(norm(x, f"{prefix}.ln_2"), weights, f"{prefix}.mlp.0"))  # (B, S, 4H)
            x = x + linear(y, weights, f"{prefix}.mlp.3")
        # The norm acts per position, so the class token's alone is enough.
        return {"logits": linear(norm(x[:, 0], "encoder.ln"), weights, "heads.head")}

    def cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        batch, length, w = int(parameters["batch_size"]), self.length(parameters), BYTES_PER_VALUE[dtype]
        rows, h = batch * length, self.hidden
        states, scores = rows * h, batch * self.heads * length * length
        written = 0 if fused_attention else scores  # values of scores that reach memory
        matmuls = [linear_cost(rows, *sizes, w) for sizes in ((h, 3 * h), (h, h), (h, 4 * h), (4 * h, h))]
        edge = int(parameters["image"])
        once = (
            convolution_cost(batch, (CHANNELS, h), (edge, edge // self.patch), self.patch, w),
            linear_cost(batch, h, self.classes, w),
        )
        norms = 2 * self.layers + 1
        # Operations a value as BERT's: layer norm 7, softmax 5, GELU 5; biases of four products, two residual sums, the
        # scale of the scores. Once: the patches' bias, the token, the positions.
        pointwise_flops = 5 * 4 * states + 9 * states + 2 * states + scores
        pointwise_bytes = 2 * w * (4 * states + written) + 2 * 3 * w * states
        transposes = 0 if fused_attention else 4 * 2 * w * states * self.layers  # of heads
        weights = sum(math.prod(shape) for shape in self.weight_shapes(parameters).values())
        return cost_of_layers(
            self.layers,
            matmuls,
            once,
            (2 * 2 * rows * length * h, 2 * w * (2 * states + written)),
            OperatorCost(
                "normalisation",
                norms * 7 * states + self.layers * 5 * scores,
                2 * w * (norms * states + self.layers * written),
                transcendentals=self.layers * scores,
            ),
            OperatorCost(
                "pointwise",
                self.layers * pointwise_flops + 2 * states,
                self.layers * pointwise_bytes + 2 * w * states,
                transcendentals=self.layers * 4 * states,
            ),
            transposes + 2 * w * states,  # patches and token into one tensor
            w * (weights + math.prod(image_shape(parameters)) + batch * self.classes),
        )

    def training_forward_cost(self, parameters: Parameters, dtype: str, fused_attention: bool = False) -> Cost:
        values = int(parameters["batch_size"]) * self.classes
        return self.cost(parameters, dtype, fused_attention).with_loss(values, BYTES_PER_VALUE[dtype])

    def canonical_name(self, checkpoint_name: str) -> str:
        """Return the name, with mlp.0 and mlp.3 for linear_1 and linear_2 of the oldest checkpoints."""
        return checkpoint_name.replace("mlp.linear_1", "mlp.0").replace("mlp.linear_2", "mlp.3")

    def weight_parameters(self, parameters: Parameters) -> Parameters:
        return {"image": parameters["image"]}  # each position has an embedding


def _vit(name: str, image: int, patch: int, *, layers: int, hidden: int, heads: int, classes: int) -> ViT:
    return ViT(
        name=name,
        family="vit",
        implementations=("plain", "library"),
        parameters=(*image_parameters(image, smallest=patch), ATTENTION),
        tolerance=tolerance(layers),
        passes=("inference", "training"),
        patch=patch,
        layers=layers,
        hidden=hidden,
        heads=heads,
        classes=classes,
    )


WORKLOADS = {
    workload.name: workload
    for workload in (
        _vit("vit-b16", 224, 16, layers=12, hidden=768, heads=12, classes=1000),  # 86.6M weights
        _vit("vit-tiny", 32, 8, layers=2, hidden=32, heads=2, classes=10),
    )
}
