"""Users' own models in a worker: what their outputs are compared with, what a call costs, what leaves its graphs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from frameworks.adapter import Step
from frameworks.own import Owned
from measurement.own import OwnModel
from measurement.sampling import Clocks
from workloads.spec import sampled

# Calls whose graphs are timed apart; each graph is waited for, so these are never the calls of a sample.
PRICED_CALLS = 7


def told_by(step: Step) -> Owned:
    """What a step of a user's model tells besides. Raises TypeError for another one."""
    if step.own is None:
        raise TypeError("this step is of no user's model")
    return step.own


def found_out(told: Owned, calls: int, path: Path) -> OwnModel:
    """The reference outputs of the first calls, written to `path`, and the counted cost of a call.

    Raises Unsupported where there is no reference to be had.
    """
    name, outputs = told.reference(calls)
    values: dict[str, Any] = {
        f"{index}.{key}": sampled(value, np.float64)
        for index, arrays in enumerate(outputs)
        for key, value in arrays.items()
    }
    np.savez(path, **values)
    counted = told.cost()
    if counted is None:
        return OwnModel(str(path), name)
    costs = asdict(counted)
    return OwnModel(str(path), name, counted_by=costs.pop("by"), **costs)


def priced(step: Step, synchronize: Callable[[Any], None], clocks: Clocks) -> tuple[float, float]:
    """Seconds of a call within its graphs, and of the whole call, both waited for: medians over some calls."""
    inside, told = 0.0, told_by(step)

    def around(graph: Callable, arguments: Sequence) -> Any:
        nonlocal inside
        synchronize(None)
        start = clocks.wall()
        output = graph(*arguments)
        synchronize(output)
        inside += clocks.wall() - start
        return output

    told.watch(around)
    calls = []
    try:
        for _ in range(PRICED_CALLS):
            inside, start = 0.0, clocks.wall()
            synchronize(step())
            calls.append((inside, clocks.wall() - start))
    finally:
        told.watch(None)
    return median(within for within, _ in calls), median(whole for _, whole in calls)
