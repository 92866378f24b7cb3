"""Residual networks written with `paddle.nn`, operator for operator as in the other frameworks' files of this name."""

from __future__ import annotations

import paddle.nn.functional as F
from paddle import nn

from workloads import resnet

RUNNING = {"running_mean": "_mean", "running_var": "_variance"}


class Normed(nn.Layer):
    """A convolution and its batch norm."""

    def __init__(self, part: resnet.Convolution, layout: str):
        super().__init__()
        self.convolution = nn.Conv2D(
            part.inputs, part.outputs, part.size, part.stride, part.padding, bias_attr=False, data_format=layout
        )
        # Paddle's momentum is the share that stays.
        self.norm = nn.BatchNorm2D(part.outputs, 1 - resnet.MOMENTUM, resnet.BATCH_NORM_EPSILON, data_format=layout)

    def forward(self, x):
        return self.norm(self.convolution(x))


class Bottleneck(nn.Layer):
    """Three convolutions with batch norms, added to their input."""

    def __init__(self, block: resnet.Block, layout: str):
        super().__init__()
        self.first, self.second, self.third = (Normed(part, layout) for part in block.convolutions)
        self.around = Normed(block.shortcut, layout) if block.shortcut else nn.Identity()

    def forward(self, x):
        y = self.third(F.relu(self.second(F.relu(self.first(x)))))
        return F.relu(y + self.around(x))


class ResNetModel(nn.Layer):
    """A residual network."""

    def __init__(self, workload: resnet.ResNet, layout: str):
        super().__init__()
        self.layout = layout.upper()
        self.stem = Normed(workload.stem, self.layout)
        self.blocks = nn.LayerList(Bottleneck(block, self.layout) for block in workload.blocks())
        self.fc = nn.Linear(workload.features, workload.classes)

    def forward(self, images):
        """Map `images` (B, 3, I, I), or (B, I, I, 3) where channels are last -> logits (B, classes)."""
        x = F.relu(self.stem(images))  # (B, W, I/2, I/2), or in the other order
        x = F.max_pool2d(x, 3, 2, 1, data_format=self.layout)  # (B, W, I/4, I/4)
        for block in self.blocks:
            x = block(x)
        pooled = F.adaptive_avg_pool2d(x, 1, data_format=self.layout)
        return self.fc(pooled.flatten(1))  # (B, classes)


def names(workload: resnet.ResNet) -> dict[str, str]:
    """Return the parameters above that hold the tensors of the canonical names."""
    parameters = {"fc.weight": "fc.weight", "fc.bias": "fc.bias"} | _of_part("stem", workload.stem)
    for index, block in enumerate(workload.blocks()):
        for place, part in zip(("first", "second", "third"), block.convolutions, strict=True):
            parameters |= _of_part(f"blocks.{index}.{place}", part)
        if block.shortcut:
            parameters |= _of_part(f"blocks.{index}.around", block.shortcut)
    return parameters


def _of_part(prefix: str, part: resnet.Convolution) -> dict[str, str]:
    norm = {f"{part.norm}.{name}": f"{prefix}.norm.{RUNNING.get(name, name)}" for name in ("weight", "bias", *RUNNING)}
    return {f"{part.name}.weight": f"{prefix}.convolution.weight", **norm}
