"""Choice of a cell's model."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from frameworks.tensorflow.models.layers import Types
from measurement.cells import Cell
from workloads.spec import Arrays, Workload


def build(workload: Workload, cell: Cell, weights: Arrays) -> Any:
    """Return the cell's model with these weights; transformers takes seconds to import."""
    models = import_module(f"frameworks.tensorflow.models.{cell.implementation}").MODELS
    model = workload.model if cell.pass_name == "training" else workload
    return models[workload.family](model, cell, weights, Types.for_cell(cell))
