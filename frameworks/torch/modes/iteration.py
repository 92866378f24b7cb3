"""An optimizer iteration in each of torch's modes, on any model with its loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from frameworks.adapter import Step
from frameworks.torch.inspect import program
from frameworks.torch.modes import cuda_graph, graphs, training, whole_iteration
from frameworks.user_model import Subject
from measurement.cells import Cell


def step(
    objective: training.Objective,
    cell: Cell,
    resident: Sequence[tuple],
    device: torch.device,
    compiled: Callable[[Callable], tuple],
    own: Subject | None = None,
    replayed_by: Callable[..., Any] = cuda_graph.Replayed,
) -> Step:
    """Return the step of `cell`, on input sets that lie on the device.

    `compiled` makes of a function the compiled one, what tells of its capture, and what lists its operators. Where a
    call takes several micro-batches, they lie along the first axis of every input.
    """
    accumulate = int(cell.parameter("accumulate") or 1)
    first = resident[0] if accumulate == 1 else [tensor[0] for tensor in resident[0]]
    listed = partial(program.operations, autograd=True)
    if cell.mode == cuda_graph.MODE:
        trainer = training.Trainer(objective, objective, accumulate, keep_gradients=False, capturable=True)
        replayed = replayed_by(trainer, cuda_graph.Recorder(device), trainer.restore)
        forward = partial(replayed.operations, listed, objective, first)
        return Step(replayed, resident, replayed.capture, trainer.restore, forward, user_model=own)
    if cell.mode == whole_iteration.MODE:
        trainer = whole_iteration.Trainer(objective, accumulate, compiled)
        return Step(
            trainer, resident, trainer.capture, trainer.restore, lambda: whole_iteration.PROGRAM, user_model=own
        )
    loss, told = objective, {"program": lambda: listed(objective, first)}  # the rest follows from it
    if cell.mode != "eager":
        loss, capture, graph = compiled(objective)
        told = {"capture": capture, "program": graph}
    # Each replay writes over the gradients that the last one returned: sums over micro-batches lie elsewhere.
    keep = accumulate > 1 and graphs.uses_cuda_graphs(cell.mode, device)
    trainer = training.Trainer(objective, loss, accumulate, keep_gradients=keep)
    return Step(trainer, resident, restore=trainer.restore, user_model=own, **told)
