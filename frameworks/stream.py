"""Ways to serve calls of different lengths. A framework's own are in `frameworks/<name>/stream.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import frameworks
from frameworks.adapter import Adapter, Step, Unsupported
from measurement.cells import Cell
from measurement.streams import EAGER, STRATEGIES, Strategy
from workloads.spec import Weights, Workload


@dataclass
class Place:
    """Where a strategy works: the framework, what is computed, the model's eager step, and the range of lengths.

    `examples` are two input sets of different lengths, on the device.
    """

    adapter: Adapter
    workload: Workload
    cell: Cell  # in the baseline's mode
    weights: Weights
    step: Step
    shortest: int
    longest: int
    strategy: Strategy
    examples: Sequence[tuple] = ()


@dataclass(frozen=True)
class Counts:
    """What was compiled so far in this process: counted by the suite, and by the framework's own counter."""

    compilations: int = 0
    reported: int | None = None
    recorded: int = 0  # CUDA graphs
    seconds: float = 0.0


class Server:
    """The model as a strategy calls it; this one calls it eagerly. Strategies read no clock."""

    ran_graph = True  # whether the latest call ran a graph, where it should

    def __init__(self, place: Place):
        self.place = place

    def setup(self) -> None:
        """Do what comes before the first call, such as an export. Raises Unsupported."""

    def pad(self, inputs: tuple, length: int, padded: int) -> tuple:
        """Return an input set of a user model with padding behind its tokens. Raises Unsupported."""
        raise Unsupported("the suite pads the calls of user models in torch alone so far.")

    def mark(self, inputs: tuple) -> tuple:
        """Return an input set with what the strategy writes on its tensors."""
        return inputs

    def __call__(self, inputs: tuple) -> Any:
        return self.place.step.call(*inputs)

    def counts(self) -> Counts:
        """Return what was compiled so far."""
        return Counts(reported=0)

    def device_bytes(self) -> int | None:
        """Return memory of the device that the process holds; None on a CPU."""
        return None


def load(framework: str, name: str, device_kind: str) -> type[Server]:
    """Return a framework's server for a strategy. Raises Unsupported with the reason where it has none."""
    strategy, title = STRATEGIES[name], frameworks.describe(framework).title
    module = frameworks.part(framework, "stream")
    servers, lacking = (module.SERVERS, module.LACKING) if module else ({EAGER: Server}, {})
    if name not in servers:
        why = lacking.get(name) or ("cuda-graphs" in name and lacking.get("cuda-graphs")) or "the suite has none yet"
        raise Unsupported(f"{title} has no strategy {name}: {why}.")
    if strategy.cuda_graphs and device_kind == "cpu":
        raise Unsupported(f"{name} is made of CUDA graphs, which need a GPU.")
    found: type[Server] = servers[name]
    return found
