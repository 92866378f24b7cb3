"""Ways from a fresh process to the first answer. A framework's own are in `frameworks/<name>/start.py`."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import frameworks
from frameworks.adapter import Adapter, Step, Unsupported
from frameworks.user_file import in_a_line
from frameworks.user_imports import finding_suite
from measurement.cells import Cell
from measurement.starts import COMPILE, EAGER, WAYS
from workloads.spec import Arrays, Workload

FORM_OF_OUTPUTS = "the form of the model's outputs"


@dataclass
class Place:
    """Surroundings of a strategy: the framework, the cell, and the folder of its artefact.

    `phase` is a block whose time counts under its name. `settings` are an earlier process's findings on a user model.
    Strategies read no clock.
    """

    adapter: Adapter
    workload: Workload
    cell: Cell  # in the baseline's mode
    weights: Any  # by name; they may be made on demand
    inputs: Sequence[Arrays]
    artefact: Path
    graph: str  # the framework's first graph mode
    phase: Callable[[str], AbstractContextManager[Any]]
    settings: Mapping[str, Any] = field(default_factory=dict)


class Strategy:
    """A way to the first answer, used once in a process: `imports`, `step`, then the step's calls.

    This one makes an eager step, which every framework has.
    """

    def imports(self) -> None:
        """Import modules that the framework would import later, so that they count as importing."""

    def step(self, place: Place) -> Step:
        """Return the step, built in blocks of `place.phase`. Raises Unsupported."""
        with place.phase("build"):
            return place.adapter.prepare(place.workload, place.cell, place.weights, place.inputs)

    def fill(self, place: Place) -> None:
        """Make the artefact, in a separate process; the first call fills caches. Raises Unsupported."""
        place.adapter.synchronize(self.step(place)())

    def within_first_call(self) -> Mapping[str, float]:
        """Return seconds of the first call by phase, as the framework reports them; the rest is running."""
        return {}


class Compiled(Strategy):
    """The framework's first graph mode, whose first call traces and compiles."""

    def step(self, place: Place) -> Step:
        with place.phase("build"):
            cell = replace(place.cell, mode=place.graph)
            place.adapter.refuse(cell)
            step = place.adapter.prepare(place.workload, cell, place.weights, place.inputs)
        if step.load:
            with place.phase("load"):
                step.load()
        return step


def pickled(what: str, value: Any) -> bytes:
    """Return the bytes of a value, such as a tree with a user's classes. Raises Unsupported for what has none."""
    try:
        with finding_suite():
            return pickle.dumps(value)
    except Exception as error:
        raise Unsupported(f"{what} cannot be pickled ({in_a_line(error, 300)}).") from error


def unpickled(data: bytes) -> Any:
    """Return the value that `pickled` made bytes of."""
    with finding_suite():
        return pickle.loads(data)


STRATEGIES: dict[str, type[Strategy]] = {EAGER: Strategy, COMPILE: Compiled}


def load(framework: str, name: str) -> Strategy:
    """Return a framework's strategy of that name. Raises Unsupported with the reason where it has none."""
    module = frameworks.part(framework, "start")
    strategies, lacking = (module.STRATEGIES, module.LACKING) if module else (STRATEGIES, {})
    if name not in strategies:
        why = lacking.get(name) or lacking.get(WAYS[name].beside) or "the suite lacks it"
        raise Unsupported(f"{frameworks.describe(framework).title} has no strategy {name}: {why}.")
    return strategies[name]()
