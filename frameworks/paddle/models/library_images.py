"""ResNet as `paddle.vision` has it."""

from __future__ import annotations

from paddle import nn
from paddle.vision.models import resnet as vision

from frameworks.adapter import Unsupported
from frameworks.paddle.models.plain import load
from frameworks.paddle.models.resnet import RUNNING
from workloads.resnet import ResNet
from workloads.spec import Arrays, Parameters

# `paddle.vision.models` builds by the number of layers alone, and has no other width.
WIDTH = 64
LAYERS = {(3, 4, 6, 3): 50, (3, 4, 23, 3): 101, (3, 8, 36, 3): 152}


def resnet(workload: ResNet, parameters: Parameters, weights: Arrays) -> nn.Layer:
    """Return the network with `weights` loaded; raises ValueError for a missing, left-over or ill-shaped tensor.

    Its names are torchvision's, which the canonical ones are, but for the running statistics.
    """
    if workload.width != WIDTH or workload.stages not in LAYERS:
        raise Unsupported(
            f"paddle.vision has no ResNet of {workload.name}'s size: choose IMPL=plain or WORKLOAD=resnet50."
        )
    if parameters["layout"] != "nchw":
        raise Unsupported("paddle.vision's ResNet supports channels first only: choose LAYOUT=nchw or IMPL=plain.")
    model = vision.ResNet(vision.BottleneckBlock, LAYERS[workload.stages], num_classes=workload.classes)
    return load(model, weights, own_name)


def own_name(canonical: str) -> str:
    """Return the library's name of a canonical tensor."""
    prefix, _, tensor = canonical.rpartition(".")
    return f"{prefix}.{RUNNING.get(tensor, tensor)}"
