"""Residual networks as `torch.nn` modules, operator for operator as in the other frameworks' files of this name."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from workloads import resnet
from workloads.spec import Parameters


class Bottleneck(nn.Module):
    """Three convolutions with batch norms, added to their input."""

    def __init__(self, block: resnet.Block):
        super().__init__()
        for number, part in enumerate(block.convolutions, start=1):
            self.add_module(f"conv{number}", _convolution(part))
            self.add_module(f"bn{number}", _norm(part))
        around = block.shortcut
        self.downsample = nn.Sequential(_convolution(around), _norm(around)) if around else None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)  # (B, W, H, W)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y))
        return F.relu(y + (x if self.downsample is None else self.downsample(x)), inplace=True)


class ResNet(nn.Module):
    """A residual network under torchvision's names."""

    def __init__(self, workload: resnet.ResNet, layout: str):
        super().__init__()
        self.channels_last = layout == "nhwc"
        self.conv1, self.bn1 = _convolution(workload.stem), _norm(workload.stem)
        blocks = workload.blocks()
        for stage, count in enumerate(workload.stages, start=1):
            self.add_module(f"layer{stage}", nn.Sequential(*(Bottleneck(next(blocks)) for _ in range(count))))
        self.stages = len(workload.stages)
        self.fc = nn.Linear(workload.features, workload.classes)

    def forward(self, images: torch.Tensor) -> dict[str, torch.Tensor]:
        """Map `images` (B, 3, I, I), or (B, I, I, 3) where channels are last -> logits (B, classes)."""
        x = images.permute(0, 3, 1, 2) if self.channels_last else images  # (B, 3, I, I), a view
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)  # (B, W, I/2, I/2)
        x = F.max_pool2d(x, 3, 2, 1)  # (B, W, I/4, I/4)
        for stage in range(1, self.stages + 1):
            x = getattr(self, f"layer{stage}")(x)
        pooled = F.adaptive_avg_pool2d(x, 1).flatten(1)  # (B, features)
        return {"logits": self.fc(pooled)}


def _convolution(part: resnet.Convolution) -> nn.Conv2d:
    return nn.Conv2d(part.inputs, part.outputs, part.size, part.stride, part.padding, bias=False)


def _norm(part: resnet.Convolution) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(part.outputs, eps=resnet.BATCH_NORM_EPSILON, momentum=resnet.MOMENTUM)


def build(workload: resnet.ResNet, parameters: Parameters, weights: dict[str, torch.Tensor]) -> nn.Module:
    """Return the network holding `weights` themselves where channels are first, else copies with channels last.

    A missing or left-over tensor is a RuntimeError.
    """
    with torch.device("meta"):
        model = ResNet(workload, parameters["layout"])
    device = weights["fc.bias"].device
    counts = {name: torch.zeros((), dtype=torch.int64, device=device) for name in model.state_dict() if "num_b" in name}
    model.load_state_dict({**weights, **counts}, assign=True)  # of batches, which training counts and nothing reads
    return model.to(memory_format=torch.channels_last) if model.channels_last else model
