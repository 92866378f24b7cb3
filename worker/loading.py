"""A group's weights and inputs, from the files that its job names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from measurement.cells import Cell
from workloads.spec import Workload


def load_weights(workload: Workload, cell: Cell, folder: str) -> Mapping[str, np.ndarray]:
    """Return the canonical weights by name, from memory-mapped files."""
    kept = {path.stem: np.load(path, mmap_mode="r") for path in sorted(Path(folder).glob("*.npy"))}
    return workload.weights_from(dict(cell.parameters), kept)


def load_inputs(path: str) -> list[dict[str, np.ndarray]]:
    """Return the input sets of a file, in order; its keys are `<set>.<name>`."""
    sets: dict[int, dict[str, np.ndarray]] = {}
    with np.load(path) as stored:
        for key in stored.files:
            index, _, name = key.partition(".")
            sets.setdefault(int(index), {})[name] = stored[key]
    return [sets[index] for index in sorted(sets)]


def padding_of(path: str, name: str | None) -> dict[int, np.ndarray]:
    """Return the padding mask of that name by input set; empty if the file has none."""
    with np.load(path) as stored:
        return {int(key.partition(".")[0]): stored[key] for key in stored.files if key.partition(".")[2] == name}
