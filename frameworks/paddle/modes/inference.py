"""A model as a mode calls it in inference."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from paddle import nn

from frameworks.adapter import DTYPES, Adapter, Step
from frameworks.paddle.models import build
from frameworks.paddle.modes import graphs
from frameworks.paddle.modes.state import copied
from measurement.cells import Cell
from workloads import bert, gpt, lstm
from workloads.spec import Arrays, Workload

OUTPUTS = {"bert": bert.OUTPUTS, "gpt": gpt.OUTPUTS, "lstm": lstm.OUTPUTS}
OUTPUTS |= dict.fromkeys(("llama", "resnet", "vit"), ("logits",))


def prepare(adapter: Adapter, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
    """Return the step of a model in the cell's mode; a graph captures a copy of the layers with the same weights."""
    model = adapter.shared(cell, partial(model_of, workload, cell, weights))
    if cell.mode != "eager":
        model = copied(model, *model.parameters(), *model.buffers())
    sets = [adapter.place(cell, arrays) for arrays in inputs]
    return graphs.in_mode(workload, cell, model, sets, names_of(workload))


def names_of(workload: Workload) -> tuple[str, ...]:
    """Return the names of a model's outputs, in its order."""
    return OUTPUTS.get(workload.family, ("output",))


def model_of(workload: Workload, cell: Cell, weights: Arrays) -> nn.Layer:
    """Return the cell's model in its dtype."""
    model = build.build(workload, cell, weights)
    model.eval()
    if any(DTYPES[cell.dtype] not in str(parameter.dtype) for parameter in model.parameters()):
        model.to(dtype=DTYPES[cell.dtype])  # asks a GPU for its free memory even where nothing is to be cast
    return model
