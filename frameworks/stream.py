"""Ways to serve calls of different lengths. A framework's own are in `frameworks/<name>/stream.py`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import frameworks
from frameworks.adapter import Adapter, Step, Unsupported
from measurement.cells import Cell
from measurement.streams import EAGER, STRATEGIES, Strategy
from workloads.spec import Weights, Workload

LENGTH, BATCH = 0, 1  # kinds of axes, in the order of the examples after the first
MASKS = ("attention_mask", "padding_mask", "mask")  # keywords by which user models take the mask of padded calls


@dataclass
class Place:
    """Surroundings of a strategy: the framework, the cell, the model's eager step, and the range of lengths.

    `examples` are the largest input set, one of another length, and one of another batch size if that varies.
    """

    adapter: Adapter
    workload: Workload
    cell: Cell  # in the baseline's mode
    weights: Weights
    step: Step
    shortest: int
    longest: int
    largest: int
    strategy: Strategy
    examples: Sequence[tuple] = ()


@dataclass(frozen=True)
class Counts:
    """Compilations in this process so far: counted by the suite, and by the framework's own counter."""

    compilations: int = 0
    reported: int | None = None
    recorded: int = 0  # CUDA graphs
    seconds: float | None = 0.0  # None where the framework reports none


class Server:
    """The model as a strategy calls it; this one calls it eagerly. Strategies read no clock."""

    ran_graph = True  # whether the latest call ran a graph, where it should
    mask = ""  # the keyword by which padded calls pass a mask that the user's inputs() does not give

    def __init__(self, place: Place):
        self.place = place

    def setup(self) -> None:
        """Prepare the first call, such as by an export. Raises Unsupported."""

    def pad(self, inputs: tuple, length: int, padded: int) -> tuple:
        """Return an input set of a user model with zeros after its tokens. Raises Unsupported."""
        leaves, rebuild = self.flatten(inputs)
        made = []
        for leaf, axes in zip(leaves, self.free_axes(LENGTH), strict=True):
            for axis in axes:
                if leaf.shape[axis] != length:
                    raise Unsupported(f"an input has {leaf.shape[axis]} positions for a call of {length} tokens.")
                leaf = self.extended(leaf, axis, padded - length)
            made.append(leaf)
        args, kwargs = rebuild(made)
        if self.mask:
            tokens, axis = max(self.tokens(inputs), key=lambda one: math.prod(one[0].shape))
            kwargs = kwargs | {self.mask: self.extended(tokens * 0 + 1, axis, padded - length)}
        return args, kwargs

    @staticmethod
    def gives_mask(inputs: tuple) -> bool:
        """Return whether an input set of a user model holds a mask by keyword."""
        return inputs[1].get(MASKS[0]) is not None

    def masks(self) -> list[str]:
        """Return the keywords by which a user model may take a mask, where inputs() gives none."""
        args, kwargs = self.place.examples[0]
        try:
            signature = inspect.signature(self.signed)
            given = kwargs | signature.bind_partial(*args, **kwargs).arguments
        except (TypeError, ValueError):  # such as of a function without a signature
            return []
        named = signature.parameters
        takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in named.values())
        if self.gives_mask((args, kwargs)) or not self.tokens((args, kwargs)):
            return []
        return [name for name in MASKS if (takes_any or name in named) and given.get(name) is None]

    def tokens(self, inputs: tuple) -> list[tuple[Any, int]]:
        """Return the whole numbers of an input set of which the last axis alone is the length, with that axis."""
        pairs = zip(self.flatten(inputs)[0], self.free_axes(LENGTH), strict=True)
        open_ = [(leaf, axes[0]) for leaf, axes in pairs if len(axes) == 1]
        return [(leaf, axis) for leaf, axis in open_ if axis == len(leaf.shape) - 1 and "int" in str(leaf.dtype)]

    @property
    def signed(self) -> Any:
        """The function of a user model whose arguments are the inputs; None where it has other ones."""
        return getattr(getattr(self.place.step.user_model, "module", None), "forward", None)

    def free_axes(self, *kinds: int) -> list[list[int]]:
        """Return the axes in which tensors differ between calls, in the order of `flatten`; of these kinds if named."""
        first, *others = (self.flatten(example)[0] for example in self.place.examples)
        kept = [other for kind, other in enumerate(others) if kind in (kinds or (LENGTH, BATCH))]
        return [
            [axis for other in kept for axis in _differing(leaf, other[number])] for number, leaf in enumerate(first)
        ]

    def flatten(self, inputs: tuple) -> tuple[list[Any], Callable[[list[Any]], tuple]]:
        """Return the leaves of an input set, and a function that makes an input set of such leaves."""
        raise Unsupported("the suite has no padding for this framework.")

    def extended(self, leaf: Any, axis: int, by: int) -> Any:
        """Return a tensor with `by` zeros appended along an axis."""
        raise NotImplementedError

    def mark(self, inputs: tuple) -> tuple:
        """Return an input set with the strategy's marks on its tensors."""
        return inputs

    def __call__(self, inputs: tuple) -> Any:
        return self.place.step.call(*inputs)

    def restore(self) -> None:
        """Restore the state of a user model from before the first call."""
        self.place.step.rewind()

    def refuse_python(self, inputs: tuple) -> None:
        """Raise Unsupported where the graph of a user model calls Python, as other commands refuse it."""

    def counts(self) -> Counts:
        """Return the counts of compilations so far."""
        return Counts(reported=0)

    def device_bytes(self) -> int | None:
        """Return the process's bytes on the device; None on a CPU."""
        meter = self.place.adapter.meter(self.place.cell)
        counts = meter.allocated_bytes() if meter else None
        return max(counts) if counts else None


def _differing(one: Any, other: Any) -> list[int]:
    shapes = [tuple(getattr(leaf, "shape", ())) for leaf in (one, other)]
    if len(shapes[0]) != len(shapes[1]):
        return []
    return [axis for axis, (a, b) in enumerate(zip(*shapes, strict=True)) if a != b]


def load(framework: str, name: str, device_kind: str) -> type[Server]:
    """Return a framework's server for a strategy. Raises Unsupported with the reason where it has none."""
    strategy, title = STRATEGIES[name], frameworks.describe(framework).title
    module = frameworks.part(framework, "stream")
    servers, lacking = (module.SERVERS, module.LACKING) if module else ({EAGER: Server}, {})
    if name not in servers:
        why = lacking.get(name) or ("cuda-graphs" in name and lacking.get("cuda-graphs")) or "the suite lacks it"
        raise Unsupported(f"{title} has no strategy {name}: {why}.")
    if strategy.cuda_graphs and device_kind == "cpu":
        raise Unsupported(f"{name} consists of CUDA graphs, which need a GPU: choose DEVICE=gpu, or another strategy.")
    found: type[Server] = servers[name]
    return found
