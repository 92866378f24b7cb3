"""The batch-doubling test (He 2022): what twice the batch adds to a cell's time, where a sweep holds both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from measurement.cells import Cell

AXIS = "batch_size"


def doubled(cell: Cell) -> Cell | None:
    """The same cell at twice the batch; None for a workload without batches."""
    batch = cell.parameter(AXIS)
    if not isinstance(batch, int):
        return None
    parameters = tuple((name, 2 * batch if name == AXIS else value) for name, value in cell.parameters)
    return replace(cell, parameters=parameters)


def growth(cell: Cell, latencies: Mapping[str, float]) -> float | None:
    """Time at twice the batch over this cell's time, less one; None unless `latencies` (by cell) holds both."""
    twice = doubled(cell)
    if twice is None or cell.id not in latencies or twice.id not in latencies:
        return None
    return latencies[twice.id] / latencies[cell.id] - 1
