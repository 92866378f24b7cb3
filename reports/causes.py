"""What controls show of a graph mode that loses to eager mode, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.losses import CAUSE, LAYOUT, MASK, NO_CAUSE, PART, TF32, Finding, Loss, losses
from measurement.statistics import Interval
from records.shapes import Profile
from reports.numbers import estimate, ratio

EACH = "in one process each"  # what a claim rests on
CHANNELS = {"nchw": "channels first", "nhwc": "channels last"}


def why(group: Sequence[Profile], entries: Sequence[Profile]) -> list[str]:
    """Return sentences on every graph mode of a shape that loses: what each control shows, and if a cause stays open.

    `entries` are all cells that were profiled, with those that could not be.
    """
    return [sentence for loss in losses(group, entries) for sentence in _why(loss)]


def _why(loss: Loss) -> list[str]:
    mode = loss.graph["mode"]
    said = [f"{mode} loses to eager: {shown(loss.speedup)}.", *(_shows(loss.graph, one) for one in loss.findings)]
    if not loss.known:
        without = "no control separates it" if loss.findings else "no control ran"
        said.append(f"Not known: why {mode} loses here; {without}.")
    return said


def _shows(graph: Profile, finding: Finding) -> str:
    """Say in a sentence what a control shows."""
    mode, (circumstances, part) = graph["mode"], _words(graph, finding)
    if finding.speedup is None:
        return f"Not known: how {mode} does {circumstances}: {finding.reason}."
    words = {
        CAUSE: f"{EACH}, the loss comes with {part}",
        PART: f"{EACH}, a part of the loss comes with {part}; the rest is not known",
        NO_CAUSE: f"{EACH}, the loss is there too, so {part} does not explain it",
    }.get(finding.shows, f"whether the loss comes with {part} is inconclusive")
    return f"{circumstances[0].upper()}{circumstances[1:]}, {mode} is {shown(finding.speedup)}: {words}."


def _words(graph: Profile, finding: Finding) -> tuple[str, str]:
    """Say how a control differs, and what of the losing cell it leaves out."""
    name, changes = finding.control, finding.changes
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


def shown(interval: Interval) -> str:
    """Return a speedup with its interval."""
    return estimate(interval, "×", ratio)
