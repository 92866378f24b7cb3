"""How latency grows or shrinks along one axis with three points or more: threads, batch, sequence length."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial

from analysis.points import Point, grouped
from analysis.significance import ratio_of_latencies
from reports import drawing, numbers
from reports.content import Chart, Panel, Row, Section, Table, number
from reports.material import Material

FEWEST = 3  # points that make a line


@dataclass(frozen=True)
class Along:
    """One axis: its column, its names, what is said of it, and the rate beside the latency."""

    key: str
    title: str
    column: str
    name: str
    sentence: str
    rate: str
    rate_title: str
    against: str  # title of the ratio to the first point


THREADS = Along(
    "threads",
    "Thread scaling",
    "threads",
    "threads",
    "Twice the threads would halve the time if everything ran in parallel. “Cores used” is "
    "processor time over wall time, so it shows how many threads really worked.",
    "cpu_per_wall",
    "cores used",
    "× the speed with fewest",
)
BATCH = Along(
    "batch",
    "Batch scaling",
    "batch_size",
    "batch",
    "Where time hardly grows with the batch, calls are dominated by overhead; where it grows in proportion, the device "
    "is busy.",
    "items_per_s",
    "items/s",
    "× the smallest's",
)
LENGTH = Along(
    "length",
    "Sequence scaling",
    "seq_len",
    "sequence length",
    "Time grows in proportion to the length for most operators, and with its square for attention.",
    "tokens_per_s",
    "tokens/s",
    "× the shortest's",
)


def section(axis: Along, material: Material) -> Section | None:
    """Return one panel for everything that is alike apart from this axis, where it has three values or more."""
    points = [p for p in material.points.measured if not p.excluded and getattr(p.record, axis.column) is not None]
    if len({getattr(point.record, axis.column) for point in points}) < FEWEST:
        return None
    groups = [group for group in material.points.groups(points, axis.column) if _varies(group, axis.column)]
    if not groups:
        return None
    make = partial(_panel, axis=axis, material=material)
    return Section.make(axis.key, axis.title, (axis.sentence,), groups, make)


def _varies(group: list[Point], column: str) -> bool:
    """Return whether one of the series has so many values in a column that a line says something."""
    values: dict[str, set] = defaultdict(set)
    for point in group:
        values[point.series].add(getattr(point.record, column))
    return any(len(distinct) >= FEWEST for distinct in values.values())


def _panel(group: list[Point], axis: Along, material: Material) -> Panel:
    title = material.points.title(group[0].record, axis.column)
    rows, drawn = [], []
    for series, along in grouped(group, lambda point: point.series).items():
        along = sorted(along, key=lambda point: getattr(point.record, axis.column))
        rows += [_row(point, along[0], axis) for point in along]
        places = tuple((getattr(point.record, axis.column), point.median_ms) for point in along)
        drawn.append(drawing.Curve(series, material.mode(along[0]), places))
    columns = ("mode", axis.name, "ms (95 %)", f"{axis.against} (95 %)")
    table = Table.make((*columns, axis.rate_title), rows)
    chart = Chart(drawing.curves(drawn), f"Latency by {axis.name}; the table holds the same figures")
    keys = {material.setting_of[id(point)] for point in group if id(point) in material.setting_of}
    legend = drawing.legend({curve.mode: curve.name for curve in drawn})
    axes = f"ms per call, over {axis.name}; both axes logarithmic"
    return Panel(title, table, (chart,), setting=keys.pop() if len(keys) == 1 else "", legend=legend, axes=axes)


def _row(point: Point, first: Point, axis: Along) -> Row:
    ends = (first.record, point.record) if axis is THREADS else (point.record, first.record)
    ratio = None if point is first else ratio_of_latencies(*ends)
    cells = (
        point.series,
        number(getattr(point.record, axis.column)),
        number(point.median_ms, point.latency),
        number(ratio and ratio.value, ratio, numbers.ratio),
        number(getattr(point.record, axis.rate)),
    )
    return Row(cells, point.tags)


SECTIONS = tuple(partial(section, axis) for axis in (THREADS, BATCH, LENGTH))
