"""Results of controls for a graph mode that is slower than eager mode, in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.losses import CAUSE, LAYOUT, MASK, NO_CAUSE, PART, TF32, Finding, Loss, losses
from records.shapes import Profile
from reports.numbers import multiple

EACH = "in one process each"  # the basis of a claim
CHANNELS = {"nchw": "channels first", "nhwc": "channels last"}


def why(group: Sequence[Profile], entries: Sequence[Profile]) -> list[str]:
    """Return sentences on every graph mode of a shape that loses: each control's result, and any open cause.

    `entries` are all profiled cells, including failed ones.
    """
    return [sentence for loss in losses(group, entries) for sentence in _why(loss)]


def _why(loss: Loss) -> list[str]:
    mode = loss.graph["mode"]
    said = [
        f"{mode} is slower than eager: {multiple(loss.speedup)}.",
        *(_shows(loss.graph, one) for one in loss.findings),
    ]
    if not loss.known:
        without = "no control isolates the cause" if loss.findings else "no control ran"
        said.append(f"It is unknown why {mode} is slower; {without}.")
    return said


def _shows(graph: Profile, finding: Finding) -> str:
    """Return a sentence on the result of a control."""
    mode, (circumstances, part) = graph["mode"], _describe(graph, finding)
    if finding.speedup is None:
        return f"The control {circumstances} has no result for {mode}: {finding.reason}."
    words = {
        CAUSE: f"{EACH}, {part} explains the loss",
        PART: f"{EACH}, {part} explains part of the loss; the rest is unexplained",
        NO_CAUSE: f"{EACH}, the loss remains, so {part} does not explain it",
    }.get(finding.shows, f"it is inconclusive whether {part} explains the loss")
    return f"{circumstances[0].upper()}{circumstances[1:]}, {mode} is {multiple(finding.speedup)}: {words}."


def _describe(graph: Profile, finding: Finding) -> tuple[str, str]:
    """Return how a control differs from the losing cell, and the part of that cell that it removes, both as text."""
    name, changes = finding.control, finding.changes
    if name == MASK and changes["parameters"]["mask"] == "full":
        return "with the mask given in both modes", "the path without a mask"
    if name == MASK:
        return "with no mask given in either mode", "the mask"
    if name == LAYOUT:
        other, own = (CHANNELS[cell["parameters"]["layout"]] for cell in (changes, graph))
        return f"with {other} in both modes", own
    if name == TF32:
        return "with TF32 in both modes", "strict float32"
    part = "attention without a fused operator" if graph["implementation"] == "plain" else "the library's model"
    return "in the suite's own model with the framework's fused attention", part
