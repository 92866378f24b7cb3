"""Choice of a cell's model."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import numpy as np

from measurement.cells import Cell
from workloads.spec import Arrays, Workload


def build(workload: Workload, cell: Cell, weights: Arrays, load: Callable, dtype: np.dtype) -> tuple:
    """Return the cell's model as `plain` has models; transformers takes seconds to import."""
    models = import_module(f"frameworks.jax.models.{cell.implementation}").MODELS
    return models[workload.family](workload, cell, weights, load, dtype)
