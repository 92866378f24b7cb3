"""Ways to serve calls of different lengths. A framework's own are in `frameworks/<name>/stream.py`."""

from __future__ import annotations

import contextlib
import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import frameworks
from frameworks.adapter import Adapter, Step, Unsupported
from frameworks.user_model import Inputs, named_entries
from measurement.cells import Cell
from measurement.streams import EAGER, STRATEGIES, Strategy
from workloads.spec import Weights, Workload

LENGTH, BATCH = 0, 1  # kinds of axes, in the order of the examples after the first
MASK = "mask"  # which names of masks contain
MASKS = ("attention_mask", "padding_mask", MASK)  # names of those that a model may take which takes any keyword
MOST_MASKS = 3  # whose padding may differ
MOST_WAYS = 48  # to mark padding, of which each takes all compared calls: all those of five masks
LOW = -10_000.0  # in masks that are added to scores: its exponential is 0, and float16 holds it


@dataclass
class Place:
    """Surroundings of a strategy: the framework, the cell, the model's eager step, and the calls.

    `lengths` and `batches` are those of calls, and the longest that calls are padded to. `examples` are input sets of
    the largest of both, of the shortest length, and of the smallest batch size if that varies. `call` makes an input
    set of a length.
    """

    adapter: Adapter
    workload: Workload
    cell: Cell  # in the baseline's mode
    weights: Weights
    step: Step
    lengths: Sequence[int]
    batches: Sequence[int]
    strategy: Strategy
    examples: Sequence[Inputs]
    call: Callable[[int], Inputs]


@dataclass(frozen=True)
class Counts:
    """Compilations in this process so far: counted by the suite, and by the framework's own counter."""

    compilations: int = 0
    reported: int | None = None
    recorded: int = 0  # CUDA graphs
    seconds: float | None = 0.0  # None where the framework reports none


@dataclass(frozen=True)
class Masking:
    """How calls of a user model mark padding: by a value in the masks that inputs() gives, or in some by keyword.

    `given` has a value for each of the former, where these differ.
    """

    padding: float = 0
    names: Sequence[str] = ()  # the keywords
    dtype: str = ""
    given: Sequence[float] = ()

    @property
    def is_several(self) -> bool:
        """Return whether several masks are marked each in its own way, or made."""
        return len(self.names) > 1 or bool(self.given)


class Server:
    """The model as a strategy calls it; this one calls it eagerly. Strategies read no clock."""

    ran_graph = True  # whether the latest call ran a graph, where it should
    masking = Masking()

    def __init__(self, place: Place):
        self.place = place

    def setup(self) -> None:
        """Prepare the first call, such as by an export. Raises Unsupported."""

    def pad(self, inputs: Inputs, length: int, padded: int) -> Inputs:
        """Return an input set of a user model with padding, mostly zeros, after its tokens. Raises Unsupported."""
        leaves, rebuild = self.flatten(inputs)
        free, masks = self.free_axes(LENGTH), self.masks(inputs).values()
        values = self.masking.given or [self.masking.padding] * len(masks)
        value_of = {id(mask): value for mask, value in zip(masks, values, strict=True)}
        if padded > length and not any(free):
            raise Unsupported("inputs() gives no tensor that the suite could pad.")
        follow = all(leaf.shape[axis] == length for leaf, axes in zip(leaves, free, strict=True) for axis in axes)
        others = leaves if follow else self.flatten(self.place.call(padded))[0]
        made = []
        for leaf, other, axes in zip(leaves, others, free, strict=True):
            longer = leaf
            for axis in axes:
                by = padded - length if follow else other.shape[axis] - leaf.shape[axis]
                longer = self.extended(longer, axis, by, value_of.get(id(leaf), 0))
            made.append(longer)
        args, kwargs = rebuild(made)
        names = {id(value): name for name, value in named_entries(self.arguments(inputs))}
        for mask in self.masking.names:
            alike = [_same_begin(mask, names.get(id(leaves[number]), "")) for number, _ in self.tokens(leaves)]
            number, axis = self.tokens(leaves)[alike.index(max(alike))]
            kwargs = kwargs | {mask: self.mask(leaves[number], axis, made[number].shape[axis])}
        return args, kwargs

    def mask(self, tokens: Any, axis: int, padded: int) -> Any:
        """Return a mask for tokens that are padded along an axis: of their batch, and last their length."""
        whole = "int" in str(tokens.dtype)
        rows = tokens.shape[: axis if whole else 1] if axis else tokens.shape[1:2]
        array = np.full((*rows, padded), self.masking.padding, self.masking.dtype)
        array[..., : tokens.shape[axis]] = 1 - self.masking.padding
        model: Any = self.place.step.user_model
        return model.cast(((array,), {}), model.dtype)[0][0]

    def tokens(self, leaves: Sequence[Any]) -> list[tuple[int, int]]:
        """Return the places of inputs in which one axis is the length, with that axis: the largest whole numbers first.

        Others follow, such as features of speech.
        """
        found = [(number, axes[0]) for number, axes in enumerate(self.free_axes(LENGTH)) if len(axes) == 1]
        sizes = [("int" in str(leaf.dtype), math.prod(leaf.shape)) if hasattr(leaf, "dtype") else () for leaf in leaves]
        return sorted(found, key=lambda one: sizes[one[0]], reverse=True)

    def arguments(self, inputs: Inputs) -> dict[str, Any]:
        """Return an input set by the names of the model's parameters, where these are known."""
        args, kwargs = inputs
        try:
            return inspect.signature(self.signed).bind_partial(*args, **kwargs).arguments
        except (TypeError, ValueError):  # such as of a function without a signature
            return kwargs

    def masks(self, inputs: Inputs) -> dict[str, Any]:
        """Return the masks that an input set holds, by name."""
        entries = named_entries(self.arguments(inputs))
        return {name: value for name, value in entries if MASK in name.lower() and bool(getattr(value, "shape", ()))}

    def maskings(self) -> list[Masking]:
        """Return the ways to mark padding by other values than 0, and by masks that inputs() does not give.

        Those of which each is alike in all masks come first.
        """
        example = self.place.examples[0]
        masks = self.masks(example)
        found = [Masking(value) for value in (1, LOW)] if masks else []
        several: list[Masking] = []
        if len(masks) <= MOST_MASKS:
            mixed = itertools.product((0, 1, LOW), repeat=len(masks))
            several += [Masking(given=values) for values in mixed if len(set(values)) > 1]
        given = dict(named_entries(self.arguments(example)))
        with contextlib.suppress(TypeError, ValueError):
            named = inspect.signature(self.signed).parameters
            names = [name for name in named if MASK in name.lower()]
            names += MASKS if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in named.values()) else ()
            lacking = [name for name in dict.fromkeys(names) if (example[1] | given).get(name) is None]
            kinds = (("int64", 0), ("bool", 0), ("bool", 1)) if self.tokens(self.flatten(example)[0]) else ()
            found += [Masking(padding, (name,), dtype) for name in lacking for dtype, padding in kinds]
            sets = [*itertools.combinations(lacking, 2), *([tuple(lacking)] if len(lacking) > 2 else [])]
            several += [Masking(padding, names, dtype) for names in sets for dtype, padding in kinds]
        return (found + several)[:MOST_WAYS]

    @property
    def signed(self) -> Any:
        """The function of a user model whose arguments are the inputs; None where it has other ones."""
        return getattr(getattr(self.place.step.user_model, "module", None), "forward", None)

    def free_axes(self, *kinds: int) -> list[list[int]]:
        """Return the axes in which tensors differ between calls, in the order of `flatten`; of these kinds if named."""
        first, *others = (self.flatten(example)[0] for example in self.place.examples)
        if {len(first)} != {len(other) for other in others}:
            raise Unsupported("inputs() gives another number of tensors for another length or batch size.")
        kept = [other for kind, other in enumerate(others) if kind in (kinds or (LENGTH, BATCH))]
        return [
            [axis for other in kept for axis in _differing(leaf, other[number])] for number, leaf in enumerate(first)
        ]

    def flatten(self, inputs: tuple) -> tuple[list[Any], Callable[[list[Any]], tuple]]:
        """Return the leaves of an input set, and a function that makes an input set of such leaves."""
        raise Unsupported("the suite has no padding for this framework.")

    def extended(self, leaf: Any, axis: int, by: int, value: float) -> Any:
        """Return a tensor with a value appended `by` times along an axis."""
        raise NotImplementedError

    def mark(self, inputs: tuple) -> tuple:
        """Return an input set with the strategy's marks on its tensors."""
        return inputs

    def __call__(self, inputs: tuple) -> Any:
        return self.place.step.call(*inputs)

    @property
    def is_partial(self) -> bool:
        """Whether a part of a user model is in no graph."""
        return False

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


def _same_begin(one: str, other: str) -> int:
    """Return with how many equal characters two names begin, such as `decoder_attention_mask` and `decoder_ids`."""
    return len(list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))))


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
