"""Which node of a cluster measured what, and whether one of them is slower than the others."""

from __future__ import annotations

from collections import Counter
from statistics import median

from analysis.points import natural
from measurement.text import plain, times
from reports.content import Panel, Row, Table, number
from reports.material import Material
from reports.numbers import text_of


def panel(material: Material) -> Panel | None:
    """Return a row a node; None where no record is of a cluster."""
    cells = Counter(str(point.record.node) for point in material.points.all if point.record.node)
    if not cells:
        return None
    controls = latencies(material)
    usual = median(controls.values()) if controls else None
    rows = []
    for node in sorted(cells.keys() | controls.keys(), key=natural):
        control = controls.get(node)
        ratio = f"{control / usual:.2f}×" if control and usual else ""
        rows.append(Row((plain(node), number(cells[node]), number(control), ratio)))
    return Panel("Nodes", Table.make(("node", "cells", "control cell, ms", "of the median node's"), rows).filled())


def sentences(material: Material) -> list[str]:
    """Return how far the nodes are apart at the control cell, and which did not serve."""
    controls, notes = latencies(material), []
    if len(controls) > 1:
        low, high = min(controls.values()), max(controls.values())
        slowest = max(controls, key=lambda node: controls[node])
        notes.append(
            f"One control cell took {text_of(low)} to {text_of(high)} ms on {times(len(controls), 'node')}, "
            f"longest on {plain(slowest)}: a spread of {high / low - 1:.0%}, in one process on each."
        )
    for facts in material.machines.values():
        left_out = facts.get("left_out") or {}
        notes += [f"Node {plain(node)} did not serve: {plain(str(why))}." for node, why in left_out.items()]
    return notes


def latencies(material: Material) -> dict[str, float]:
    """Return milliseconds of the control cell by node, the latest where it was measured again."""
    entries = [entry for facts in material.machines.values() for entry in facts.get("controls") or ()]
    measured = [entry for entry in entries if entry.get("node") and isinstance(entry.get("latency_ms"), float)]
    return {str(entry["node"]): entry["latency_ms"] for entry in measured}
