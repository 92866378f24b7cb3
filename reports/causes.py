"""Why a graph mode loses to eager mode, as far as a control separates causes; else that it is not known.

A control is the same cell with one thing changed. Where the loss stays, that thing is not its cause; where it goes, the
cause is in what the control changed, and no closer than that. A cell and its control are profiled in one process each,
so their intervals do not hold how processes differ: what is claimed says so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from analysis.significance import independent_ratio
from measurement.statistics import Interval, batch_interval, log_ratios
from records.shapes import Profile, of_baseline
from records.statuses import differs
from reports.numbers import estimate, ratio

MASK, PLAIN, LAYOUT, TF32 = "mask", "plain", "layout", "tf32"
EACH = "in one process each"  # what a claim rests on
OTHER_MASK = {"none": "full", "full": "none"}
OTHER_LAYOUT = {"nchw": "nhwc", "nhwc": "nchw"}
CHANNELS = {"nchw": "channels first", "nhwc": "channels last"}
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

    Samples of one launch were taken in turn and are compared round by round.
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
    """Return what of a cell's identity each control changes, by its name; the planner leaves out what no workload has.

    `cell` has the keys of a profiled cell. The mask is given where it was not, and removed where it was. The suite's
    own model with the framework's fused attention operator takes the place of the library's, and of attention that is
    written out. Images are laid out in the other order, and on a GPU TF32 takes the place of strict float32. Of a
    user's model the last alone is changed: what an argument of its is called, `mask` say, tells nothing of it.
    """
    changes, implementation = {}, cell["implementation"]
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


def identity(cell: Profile) -> tuple:
    """Return what cells that differ in their mode alone have in common."""
    return tuple(tuple(sorted(v.items())) if isinstance(v := cell.get(name), dict) else v for name in IDENTITY)


def why(group: Sequence[Profile], entries: Sequence[Profile]) -> list[str]:
    """Return sentences on every graph mode of a shape that loses: what each control shows, and if a cause stays open.

    `entries` are all cells that were profiled, with those that could not be.
    """
    losses = ((graph, speedup(group[0], graph)) for graph in losing(group))
    return [sentence for graph, loss in losses if loss for sentence in _why(group[0], graph, loss, entries)]


def _why(eager: Profile, graph: Profile, loss: Interval, entries: Sequence[Profile]) -> list[str]:
    mode = graph["mode"]
    shows = [f"{mode} loses to eager: {shown(loss)}."]
    known = differs(graph.get("program"))  # which is said of every such graph, whether it loses or not
    for name, changes in controls(graph).items():
        pair = {entry["mode"]: entry for entry in entries if identity(entry) == identity({**graph, **changes})}
        if mode in pair:
            circumstances, part = _words(name, graph, changes)
            sentence, separates = _shows(mode, loss, pair.get(eager["mode"]), pair[mode], circumstances, part)
            shows.append(sentence)
            known |= separates
    if not known:
        shows.append(
            f"Not known: why {mode} loses here; {'no control separates it' if shows[1:] else 'no control ran'}."
        )
    return shows


def _words(name: str, graph: Profile, changes: Profile) -> tuple[str, str]:
    """Say how a control differs, and what of the losing cell it leaves out."""
    if name == MASK and changes["parameters"]["mask"] == "full":
        return "with the mask given in both modes", "what is done where no mask is given"
    if name == MASK:
        return "with no mask given in either mode", "the mask that is given"
    if name == LAYOUT:
        other, own = (CHANNELS[cell["parameters"]["layout"]] for cell in (changes, graph))
        return f"with {other} in both modes", own
    if name == TF32:
        return "with TF32 in both modes", "strict float32"
    part = "attention that is written out" if graph["implementation"] == "plain" else "the library's model"
    return "in the suite's own model with the framework's fused attention", part


def _shows(
    mode: str, loss: Interval, eager: Profile | None, graph: Profile, circumstances: str, part: str
) -> tuple[str, bool]:
    """Say in a sentence what a control shows, and whether that explains the loss."""
    failed = [entry for entry in (graph, eager) if entry is None or entry["status"] != "explained"]
    if eager is None or failed:
        reason = failed[0]["reason"] if failed[0] else "eager mode was not measured."
        return f"Not known: how {mode} does {circumstances}: {reason.rstrip('.')}.", False
    interval = speedup(eager, graph)
    if interval is None:
        return f"Not known: how {mode} does {circumstances}: too few samples for an interval.", False
    beginning = f"{circumstances[0].upper()}{circumstances[1:]}, {mode} is {shown(interval)}"
    if independent_ratio(interval, loss).low > 1:
        if loses(interval):
            return f"{beginning}: {EACH}, a part of the loss comes with {part}; the rest is not known.", False
        return f"{beginning}: {EACH}, the loss comes with {part}.", True
    if loses(interval):
        return f"{beginning}: {EACH}, the loss is there too, so {part} does not explain it.", False
    return f"{beginning}: whether the loss comes with {part} is inconclusive.", False


def shown(interval: Interval) -> str:
    """Return a speedup with its interval."""
    return estimate(interval, "×", ratio)
