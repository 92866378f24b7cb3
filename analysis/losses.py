"""Why a graph mode is slower than eager mode, as far as a control separates causes.

A control is the same cell with one change. If the loss stays, the change is not its cause; if it disappears, the cause
is somewhere in the changed part. A cell and its control are profiled in one process each, so their intervals exclude
differences between processes, as each claim states.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.significance import independent_ratio
from measurement.statistics import Interval, batch_interval, log_ratios
from records.shapes import Profile, of_baseline
from records.statuses import differs

MASK, PLAIN, LAYOUT, TF32 = "mask", "plain", "layout", "tf32"
# What a control's change explains: the whole loss, a part of it, nothing, or inconclusive.
CAUSE, PART, NO_CAUSE, OPEN = "cause", "part", "no cause", "open"
OTHER_MASK = {"none": "full", "full": "none"}
OTHER_LAYOUT = {"nchw": "nhwc", "nhwc": "nchw"}
IDENTITY = (
    "framework",
    "workload",
    "implementation",
    "pass_name",
    "device",
    "dtype",
    "threads",
    "parameters",
    "shapes",
)


def speedup(eager: Profile, graph: Profile) -> Interval | None:
    """Return eager's time over the graph's with its 95 % interval; None from fewer than six samples.

    Samples of one process were taken in turn and are compared round by round.
    """
    samples = [entry.get("samples_s") or [] for entry in (eager, graph)]
    if eager.get("launch") == graph.get("launch") and len(samples[0]) == len(samples[1]):
        interval = batch_interval(log_ratios(*samples))
        return interval.map(math.exp) if interval else None
    # On logarithms: an interval of seconds that scatter widely may reach below zero.
    one, other = (batch_interval(list(map(math.log, times))) for times in samples)
    return independent_ratio(one.map(math.exp), other.map(math.exp)) if one and other else None


def loses(interval: Interval | None) -> bool:
    """Return whether graph mode is slower by more than the interval."""
    return interval is not None and interval.high < 1


def losing(group: Sequence[Profile]) -> list[Profile]:
    """Return the graph modes of a shape that lose to its eager mode, which comes first."""
    if not group or not of_baseline(group[0]):
        return []
    return [entry for entry in group[1:] if loses(speedup(group[0], entry))]


def controls(cell: Profile) -> dict[str, dict[str, Any]]:
    """Return by name each control's changes to a cell's identity; the planner omits those that no workload has.

    `cell` has the keys of a profiled cell. One control adds a missing mask, or removes a given one. One replaces the
    library's model, or explicit attention, by the suite's own model with the framework's fused attention operator. One
    uses the other layout of images, and on a GPU one uses TF32 instead of strict float32. A user's model has the last
    control alone: the name of its argument, `mask` say, has no fixed meaning.
    """
    changes: dict[str, dict[str, Any]] = {}
    implementation = cell["implementation"]
    parameters = {} if implementation == "own" else cell["parameters"]
    if parameters.get("mask") in OTHER_MASK:
        changes[MASK] = {"parameters": parameters | {"mask": OTHER_MASK[parameters["mask"]]}}
    if implementation == "library" or parameters.get("attention") == "explicit":
        changes[PLAIN] = {"implementation": "plain", "parameters": parameters | {"attention": "fused"}}
    if parameters.get("layout") in OTHER_LAYOUT:
        changes[LAYOUT] = {"parameters": parameters | {"layout": OTHER_LAYOUT[parameters["layout"]]}}
    if cell["dtype"] == "fp32" and cell["device"].startswith("gpu"):
        changes[TF32] = {"dtype": "tf32"}
    return changes


def identity(cell: Mapping[str, Any]) -> tuple:
    """Return the properties that cells share if they differ in their mode alone."""
    return tuple(tuple(sorted(v.items())) if isinstance(v := cell.get(name), dict) else v for name in IDENTITY)


@dataclass(frozen=True)
class Finding:
    """Result of a control: `speedup` of the mode over eager mode in it, or None for a `reason`."""

    control: str
    changes: dict[str, Any]
    shows: str
    speedup: Interval | None = None
    reason: str = ""


@dataclass(frozen=True)
class Loss:
    """A graph mode that is slower than eager, by how much, and the results of its controls."""

    graph: Profile
    speedup: Interval
    findings: tuple[Finding, ...]

    @property
    def known(self) -> bool:
        """Return whether a cause is known: a control's, or another program than eager mode's."""
        return differs(self.graph.get("program")) or any(one.shows == CAUSE for one in self.findings)


def losses(group: Sequence[Profile], entries: Sequence[Profile]) -> list[Loss]:
    """Return the graph modes of a shape that lose; `entries` are all profiled cells, including failed ones."""
    lost = ((graph, speedup(group[0], graph)) for graph in losing(group))
    return [Loss(graph, loss, tuple(_findings(group[0], graph, loss, entries))) for graph, loss in lost if loss]


def _findings(eager: Profile, graph: Profile, loss: Interval, entries: Sequence[Profile]) -> list[Finding]:
    found = []
    for name, changes in controls(graph).items():
        pair = {entry["mode"]: entry for entry in entries if identity(entry) == identity({**graph, **changes})}
        if graph["mode"] in pair:
            found.append(_finding(name, changes, loss, pair.get(eager["mode"]), pair[graph["mode"]]))
    return found


def _finding(name: str, changes: dict[str, Any], loss: Interval, eager: Profile | None, graph: Profile) -> Finding:
    """Return the result of a control, and whether it explains the loss."""
    failed = [entry for entry in (graph, eager) if entry is None or entry["status"] != "explained"]
    if eager is None or failed:
        reason = failed[0]["reason"] if failed[0] else "eager mode was not measured"
        return Finding(name, changes, OPEN, reason=reason.rstrip("."))
    interval = speedup(eager, graph)
    if interval is None:
        return Finding(name, changes, OPEN, reason="too few samples for an interval")
    lost = loses(interval)
    better = independent_ratio(interval, loss).low > 1
    shows = (PART if lost else CAUSE) if better else NO_CAUSE if lost else OPEN
    return Finding(name, changes, shows, interval)
