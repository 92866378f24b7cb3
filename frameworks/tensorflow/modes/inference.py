"""A model as a mode calls it in inference."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from frameworks.adapter import Adapter, Step
from frameworks.tensorflow.models import build
from frameworks.tensorflow.modes import graphs
from measurement.cells import Cell
from workloads.spec import Arrays, Workload


def prepare(adapter: Adapter, workload: Workload, cell: Cell, weights: Arrays, inputs: Sequence[Arrays]) -> Step:
    """Return the step of a model in the cell's mode."""
    model = adapter.shared(cell, partial(build.build, workload, cell, weights))
    return graphs.in_mode(workload, cell, model, [adapter.place(cell, arrays) for arrays in inputs])
