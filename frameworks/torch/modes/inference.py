"""A model as a mode calls it: eager, replayed, or compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from frameworks.adapter import Adapter, Step
from frameworks.torch import FRAMEWORK, forms
from frameworks.torch.inspect import program
from frameworks.torch.modes import cuda_graph, graphs
from measurement.cells import Cell
from workloads.spec import Arrays, Workload


def prepare(adapter: Adapter, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
    """Return the step of a model in the cell's mode."""
    model = adapter.model(workload, cell, weights)
    return in_mode(adapter.device, cell, model, [adapter.place(cell, arrays) for arrays in inputs])


def in_mode(
    device: torch.device,
    cell: Cell,
    model: torch.nn.Module,
    resident: Sequence[tuple],
    outer: Callable[[Callable], Callable] = lambda call: call,
    restore: Callable[[], None] = lambda: None,
) -> Step:
    """Return the model as the cell's mode calls it, on inputs that are on the device."""
    if not FRAMEWORK.mode(cell.mode).graph:
        call = inference(model)
        return Step(outer(call), resident, restore=restore, program=partial(program.executed, call, resident[0]))
    if cell.mode == cuda_graph.MODE:
        replayed = cuda_graph.Replayed(inference(model), cuda_graph.Recorder(device), restore)
        listed = partial(replayed.operations, program.executed)
        return Step(outer(replayed), resident, replayed.capture, restore, listed)
    if FRAMEWORK.mode(cell.mode).artefact:
        deployed = forms.Deployed(cell, device, model, model, resident[0])
        return deployed.step(outer(deployed), resident, restore=restore)
    compiled, capture, listed = graphs.compile_model(model, cell.mode, device, cell.shapes)
    return Step(outer(inference(compiled)), resident, capture, restore, lambda: listed(inference))


def inference(model: Callable) -> Callable:
    """Return `model` as inference calls it."""

    def call(*inputs: torch.Tensor) -> Any:
        with torch.inference_mode():
            return model(*inputs)

    return call
