"""Peak device memory of every mode, beside eager's."""

from __future__ import annotations

from reports import charts
from reports.content import Chart, Panel, Row, Section, Table, number
from reports.material import Material
from reports.points import Point, grouped

SENTENCE = (
    "Peak memory on the device, as the framework counts it; allocators differ, so compare modes of one framework. It "
    "is one reading per launch, the largest of them, and has no interval."
)
COLUMNS = ("shape", "mode", "peak memory, MB", "times eager's")


def section(material: Material) -> Section | None:
    """One panel for each setting with readings, which are to be had on GPUs only."""
    known = [point for point in material.points.measured if point["peak_memory_mb"] is not None]
    groups = list(grouped(known, lambda point: point.setting).values())
    if not groups:
        return None
    names = material.points.series
    return Section.of("memory", "Memory", (SENTENCE,), groups, lambda group: _panel(group, names))


def _panel(group: list[Point], names: list[str]) -> Panel:
    eager = {(p.shape, p["framework"], p["machine_id"]): p["peak_memory_mb"] for p in group if p.eager}
    rows, drawn = [], []
    several = len({point.shape for point in group}) > 1
    for point in group:
        own, base = point["peak_memory_mb"], eager.get((point.shape, point["framework"], point["machine_id"]))
        ratio = number(own / base) if base and not point.eager else ""
        rows.append(Row((point.shape, point.series, number(own), ratio), point.tags))
        row = point.shape if several else point.series
        drawn.append({"row": row, "series": point.series, "framework": point["framework"], "value": own})
    table = Table.of(COLUMNS, rows)
    drawing = charts.dots(drawn[: len(table.rows)], "peak memory, MB", names, zero=True)
    words = f"Peak device memory: {group[0].setting}. The table holds the same figures."
    return Panel(group[0].setting, table, Chart(drawing, words))
