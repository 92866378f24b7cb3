"""How latency changes along one axis with three values or more: threads, batch, sequence length."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial

from analysis.points import Point, grouped
from reports import drawing
from reports.content import Chart, Figure, Panel, Row, Section, Table, number
from reports.report_data import ReportData

FEWEST = 3  # points that make a line


@dataclass(frozen=True)
class Along:
    """One axis: its column, its names, and its sentence."""

    key: str
    title: str
    column: str
    name: str
    sentence: str


AXES = (
    Along(
        *("threads", "Thread scaling", "threads", "threads"),
        "Twice the threads would halve the time if everything ran in parallel.",
    ),
    Along(
        *("batch", "Batch scaling", "batch_size", "batch"),
        "If time hardly grows with the batch, overhead dominates; if it grows in proportion, the device is busy.",
    ),
    Along(
        *("length", "Sequence scaling", "seq_len", "sequence length"),
        "Time grows in proportion to the length for most operators, and with its square for attention.",
    ),
)


def section(axis: Along, data: ReportData) -> Section | None:
    """Return one panel for each group that differs only along this axis, with three values or more."""
    points = [p for p in data.points.measured if not p.excluded and getattr(p.record, axis.column) is not None]
    groups = [group for group in data.points.groups(points, axis.column) if _varies(group, axis.column)]
    if not groups:
        return None
    make = partial(_panel, axis=axis, data=data)
    return Section.make(axis.key, axis.title, (axis.sentence,), groups, make)


def _varies(group: list[Point], column: str) -> bool:
    """Return whether one of the series has enough values in a column for a line."""
    values: dict[str, set] = defaultdict(set)
    for point in group:
        values[point.series].add(getattr(point.record, column))
    return any(len(distinct) >= FEWEST for distinct in values.values())


def _panel(group: list[Point], axis: Along, data: ReportData) -> Panel:
    """Return curves, and milliseconds with a row per mode and a column per value."""
    series = grouped(group, lambda point: point.series)
    values = sorted({getattr(point.record, axis.column) for point in group})
    rows, drawn = [], []
    for name, along in series.items():
        by_value = {getattr(point.record, axis.column): point.median_ms for point in along}
        cells: list[str | Figure] = [number(by_value.get(value)) for value in values]
        rows.append(Row((name, *cells), {"mode": name}))
        drawn.append(drawing.Curve(name, data.mode(along[0]), tuple(sorted(by_value.items()))))
    table = Table.make(("mode", *(f"{axis.name} {value}, ms" for value in values)), rows)
    chart = Chart(drawing.curves(drawn), f"Latency by {axis.name}; the table holds the same figures")
    keys = {data.setting_of[id(point)] for point in group if id(point) in data.setting_of}
    return Panel(
        data.points.title(group[0].record, axis.column),
        table,
        (chart,),
        setting=keys.pop() if len(keys) == 1 else "",
        legend=drawing.legend({curve.mode: curve.name for curve in drawn}),
        axes=f"ms per call, over {axis.name}; both axes logarithmic",
    )


SECTIONS = tuple(partial(section, axis) for axis in AXES)
