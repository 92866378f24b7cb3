"""Operator of each kernel: the one that launched it, or the attention that contains it.

A kernel's name gives the operation that it computes, but not its purpose: without fused attention, its matrix products
have the same names as any others.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from frameworks.traces.events import Event
from measurement import kernels

# The products of scores and values may have one product of a weight between them and the softmax: the projection of
# the values, which needs neither. More of them mean another softmax, such as a classifier's.
WEIGHTS_BETWEEN = 1
TICK = 1e-9  # seconds: equal ends differ by up to this much once they are sums


@dataclass(frozen=True)
class _Unit:
    """A matrix product with the wrappers around it. `batched` is None where unknown."""

    first: int  # its place in the order of starts
    start_s: float
    end_s: float
    batched: bool | None


def enclosing(events: Sequence[Event]) -> list[tuple[int, ...]]:
    """Return for each event the events that contain it on its lane, by index, the outermost first.

    Starts that a profiler rounds (Paddle's, to a microsecond) make successive events overlap.
    """
    around: list[tuple[int, ...]] = [()] * len(events)
    lanes = defaultdict(list)
    for index, event in enumerate(events):
        lanes[event.lane].append(index)
    for members in lanes.values():
        open_events: list[int] = []
        for index in sorted(members, key=lambda i: (events[i].start_s, -events[i].duration_s)):
            event = events[index]
            while open_events and not _holds(events[open_events[-1]], event):
                open_events.pop()
            around[index] = tuple(open_events)
            open_events.append(index)
    return around


def _holds(outer: Event, inner: Event) -> bool:
    return inner.start_s < outer.end_s and inner.end_s <= outer.end_s + TICK


def operators(events: Sequence[Event]) -> list[str]:
    """Return for each event the name of its operator; empty where none is found.

    In this order: the outermost attention operator that launched it or contains it; attention that a model spelled out
    (`kernels.UNFUSED_ATTENTION`), by the softmax and the two batched products around it; the operator that launched it.
    """
    around = enclosing(events)
    paths = [(*event.operators, *(events[i].name for i in around[index])) for index, event in enumerate(events)]
    parts = [next((name for name in path if kernels.is_attention(name)), "") for path in paths]
    for index in _around_softmax(events, around, parts):
        parts[index] = kernels.UNFUSED_ATTENTION
    return [part or (event.operators[-1] if event.operators else "") for part, event in zip(parts, events, strict=True)]


def _around_softmax(events: Sequence[Event], around: list[tuple[int, ...]], parts: list[str]) -> set[int]:
    """Return the events of attention that is spelled out: its products, and all events between them."""
    order = sorted(
        (i for i in range(len(events)) if not parts[i]), key=lambda i: (events[i].start_s, -events[i].duration_s)
    )
    unit_of, units = _products(events, around, order)
    starts = [unit.first for unit in units]
    inside: set[int] = set()
    for place, index in enumerate(order):
        if not kernels.is_softmax(events[index].name):
            continue
        fused = unit_of.get(index)  # a product with its softmax fused into it
        after = bisect_left(starts, place) if fused is None else fused + 1
        before = range(after - 1, -1, -1)
        left = (
            [fused, *_run(units, range(fused - 1, -1, -1))]
            if fused is not None and units[fused].batched
            else _nearest(units, before)
        )
        right = _nearest(units, range(after, len(units)))
        if not left or not right:
            continue
        chosen = {*left, *right}
        low = bisect_left(order, units[min(chosen)].start_s, key=lambda i: events[i].start_s)
        high = bisect_left(order, units[max(chosen)].end_s, key=lambda i: events[i].start_s)
        inside |= {i for i in order[low:high] if unit_of.get(i) is None or unit_of[i] in chosen}
    return inside


def _products(
    events: Sequence[Event], around: list[tuple[int, ...]], order: list[int]
) -> tuple[dict[int, int], list[_Unit]]:
    """Return the matrix products in the order of their starts, and which of them an event belongs to."""
    unit_of: dict[int, int] = {}
    units: list[_Unit] = []
    for place, index in enumerate(order):
        event = events[index]
        outer = next((unit_of[i] for i in around[index] if i in unit_of), None)
        text = " ".join((*event.operators, event.name))
        product = kernels.classify(event.name, *event.operators[-1:]) == "matmul"
        if outer is not None:
            unit_of[index] = outer
            if product and units[outer].batched is None:
                known = units[outer]
                units[outer] = _Unit(known.first, known.start_s, known.end_s, kernels.is_batched(text))
        elif product:
            unit_of[index] = len(units)
            units.append(_Unit(place, event.start_s, event.end_s, kernels.is_batched(text)))
    return unit_of, units


def _nearest(units: list[_Unit], places: range) -> list[int]:
    """Return the nearest product of two activations and those that follow; empty beyond several of weights.

    A product of unknown kind must be the very next.
    """
    for position, place in enumerate(places[: WEIGHTS_BETWEEN + 1]):
        if units[place].batched:
            return [place, *_run(units, places[position + 1 :])]
        if units[place].batched is None:
            return [] if position else [place]
    return []


def _run(units: list[_Unit], places: range) -> list[int]:
    """Return the batched products without others in between: a backward pass has two on each side."""
    run = []
    for place in places:
        if not units[place].batched:
            break
        run.append(place)
    return run
