"""Strategies of `make stream`, and the job and report of a process for a stream of lengths."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from measurement.checked import Count, Duration, Positive
from measurement.noise import Noise
from measurement.starts import EAGER

SMALLEST, MULTIPLE, PARTS = 16, 64, 8  # of buckets: the smallest power of two, the multiple, the number of quantiles
COLD, WARM = "cold", "warm"
CACHES = (COLD, WARM)


@dataclass(frozen=True)
class Strategy:
    """A strategy for calls of different lengths. `pads` names the lengths that calls are padded to; empty: none.

    A `rare` one is measured where it is named: another is at least as fast in most cells.
    """

    name: str
    summary: str
    pads: str = ""
    cuda_graphs: bool = False
    rare: bool = False


_PLAIN = (
    Strategy("static", "a graph for each length, until the framework's limit", rare=True),
    Strategy("automatic", "static for the first length; sizes that change become dynamic"),
    Strategy("dynamic", "all sizes dynamic from the first call"),
    Strategy("marked", "the length marked dynamic, with bounds", rare=True),
    Strategy("powers-of-two", "padded to powers of two", "powers"),
    Strategy("multiples-of-64", "padded to multiples of 64", "multiples", rare=True),
    Strategy("quantiles", "padded to eight quantiles of the lengths", "quantiles", rare=True),
    Strategy("longest", "padded to the longest", "longest"),
)
STRATEGIES = {
    one.name: one
    for one in (
        Strategy(EAGER, "no graph, no padding"),
        *_PLAIN,
        Strategy("polymorphic", "exported once with a symbolic length"),
        *(
            Strategy(f"{one.name}-cuda-graphs", one.summary, one.pads, True, one.rare or one.name == "dynamic")
            for one in _PLAIN
        ),
    )
}


def bounds(pads: str, longest: int, quantiles: Sequence[int]) -> list[int]:
    """Return the lengths that calls are padded to, in order; the last is the longest."""
    if pads == "powers":
        found = [1 << power for power in range(SMALLEST.bit_length() - 1, longest.bit_length())]
    elif pads == "multiples":
        found = list(range(MULTIPLE, longest, MULTIPLE))
    elif pads == "quantiles":
        found = list(quantiles)
    else:
        found = []
    return [*(bound for bound in found if bound < longest), longest]


def padded(strategy: Strategy, lengths: Sequence[int], longest: int, quantiles: Sequence[int]) -> tuple[int, ...]:
    """Return the padded length of each call."""
    if not strategy.pads:
        return tuple(lengths)
    to = bounds(strategy.pads, longest, quantiles)
    return tuple(next(bound for bound in to if bound >= length) for length in lengths)


@dataclass(frozen=True)
class StreamJob:
    """Job of a stream process: the lengths of calls, their padded lengths, and batch sizes.

    After the stream it computes the calls `compared` once more, and compares them with the file `reference`. Outputs of
    eager mode are in the file `eager`. With `refers` it makes these files of unpadded calls instead, and compares them
    with the padded ones; `settings` are what it found.
    """

    strategy: str
    lengths: tuple[int, ...]
    padded: tuple[int, ...]
    batches: tuple[int, ...]
    shortest: int
    longest: int
    compared: tuple[int, ...] = ()  # numbers of calls
    reference: str = ""
    eager: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    refers: bool = False


@dataclass(frozen=True)
class Stream:
    """Report of a stream: seconds of each call, compilations, memory, and whether outputs are within tolerance.

    `compilations` are counted at entry to the compiler, `reported` by the framework's own counter. `fell_back` is the
    first call, from 0, that ran no graph.
    """

    calls_s: tuple[Positive, ...]
    setup_s: Duration  # before the first call: an export
    compilations: Count
    reported: int | None
    recorded: Count
    compile_s: Duration | None
    fell_back: int | None
    parity: Duration | None  # the smallest tolerance that all outputs meet; None if nothing is comparable
    tolerance: Duration
    right: bool
    memory_before_bytes: Count
    memory_bytes: Count
    device_before_bytes: int | None = None
    device_bytes: int | None = None
    host_loop_s: tuple[Positive, ...] = ()
    noise: Noise | None = None  # during the stream
    eager_error: bool = False  # eager mode itself is far off the reference
    partial: bool = False  # a part of a user model is in no graph
