"""Does the parity check of a deep network's training see a wrong backward pass? Faults are planted in ResNet-50's.

`.venvs/torch-cpu/bin/python studies/training_faults.py [--batch 8] [--image 64] [--layout nchw]` trains the
suite's ResNet-50 for the iterations that are compared, in float32 and bf16, as it is and with each fault, and prints
the error that the check sees (`measurement.parity`) beside the tolerance. Without a fault it must be within that.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import workloads
from frameworks.torch.models import resnet
from frameworks.torch.modes import training
from measurement.parity import nearest_to_its_limit
from workloads.resnet import BATCH_NORM_EPSILON, MOMENTUM

BLOCK = "layer3.2"


class Constant(nn.BatchNorm2d):
    """A batch norm through whose statistics no gradient goes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.detach().float()
        variance, mean = torch.var_mean(y, (0, 2, 3), unbiased=True)
        count = y.numel() // len(mean)
        with torch.no_grad():
            self.running_mean.lerp_(mean, MOMENTUM)
            self.running_var.lerp_(variance, MOMENTUM)
        biased = variance * ((count - 1) / count)
        return F.batch_norm(x, mean, biased, self.weight, self.bias, False, 0.0, BATCH_NORM_EPSILON)


def not_trained(*names: str) -> Callable[[nn.Module], None]:
    def plant(model: nn.Module) -> None:
        for name in names:
            model.get_parameter(name).requires_grad_(False)

    return plant


def constant(*names: str) -> Callable[[nn.Module], None]:
    def plant(model: nn.Module) -> None:
        for name, module in model.named_modules():
            if isinstance(module, nn.BatchNorm2d) and (name in names or not names):
                module.__class__ = Constant

    return plant


def cut(branch: bool) -> Callable[[nn.Module], None]:
    """No gradient through a block's branch, or none through what goes around it."""

    def plant(model: nn.Module) -> None:
        block = model.get_submodule(BLOCK)

        def forward(x: torch.Tensor) -> torch.Tensor:
            y = F.relu(block.bn1(block.conv1(x.detach() if branch else x)))
            y = block.bn3(block.conv3(F.relu(block.bn2(block.conv2(y)))))
            return F.relu(y + (x if branch else x.detach()))

        block.forward = forward

    return plant


FAULTS: dict[str, Callable[[nn.Module], None]] = {
    "none": lambda model: None,
    "a convolution is not trained": not_trained(f"{BLOCK}.conv2.weight"),
    "the first convolution is not trained": not_trained("conv1.weight"),
    "the classifier is not trained": not_trained("fc.weight", "fc.bias"),
    "a batch norm's statistics count as constant": constant(f"{BLOCK}.bn2"),
    "all batch norms' statistics count as constant": constant(),
    "no gradient around a block": cut(branch=False),
    "no gradient through a block's branch": cut(branch=True),
}


def trained(workload, parameters: dict, weights: dict, sets: list, bf16: bool, plant: Callable) -> dict:
    """The outputs of iterations with a fault in the model, named as workers save them."""
    model = resnet.build(workload.model, parameters, {name: torch.tensor(array) for name, array in weights.items()})
    plant(model.train())
    objective = training.Objective(model, training.LOSSES["resnet"], torch.device("cpu"), bf16)
    trainer, outputs = training.Trainer(objective, objective, 1, keep_gradients=False), {}
    for index, inputs in enumerate(sets):
        told = trainer(*map(torch.tensor, inputs.values()))
        told = {name.removeprefix("model."): value for name, value in told.items()}
        outputs |= {f"{index}.{name}": value.detach().numpy().copy() for name, value in told.items()}
    return outputs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--image", type=int, default=64)
    parser.add_argument("--layout", default="nchw", choices=("nchw", "nhwc"))
    parser.add_argument("--faults", default="", help="only those whose name contains this")
    arguments = parser.parse_args()
    workload = workloads.get("resnet50", "training")
    parameters = {"batch_size": arguments.batch, "image": arguments.image, "layout": arguments.layout, "accumulate": 1}
    weights, sets = workload.seeded_weights(parameters, 0), workload.sets(parameters, 0)[: workload.parity_calls]
    reference = {
        f"{index}.{name}": value
        for index, outputs in enumerate(workload.references(parameters, weights, sets))
        for name, value in outputs.items()
    }
    print("| fault | dtype | error | tolerance | seen |\n|---|---|---|---|---|")
    for fault, plant in FAULTS.items():
        for dtype in ("fp32", "bf16") if arguments.faults in fault or fault == "none" else ():
            outputs = trained(workload, parameters, weights, sets, dtype == "bf16", plant)
            pair = workload.comparable(parameters, outputs, reference, dtype)
            off, tolerance = nearest_to_its_limit(
                [pair], lambda output, dtype=dtype: workload.tolerance_of(output, dtype)
            )
            seen = "no" if off.within(tolerance) else "yes"
            print(f"| {fault} | {dtype} | {off.relative:.2%} | {tolerance:.1%} | {seen} |", flush=True)


if __name__ == "__main__":
    np.seterr(over="raise")
    main()
