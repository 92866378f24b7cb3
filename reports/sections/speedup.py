"""Eager against graph: the speedup of every graph mode at every shape, with its interval."""

from __future__ import annotations

import math

from measurement.schema import is_noisy
from reports import charts, facts
from reports.content import Chart, Figure, Panel, Row, Section, Table, number, span, text_of
from reports.material import FEW_LAUNCHES, Material
from reports.points import Point, grouped

COLUMNS = ("shape", "mode", "eager, ms", "graph, ms", "speedup", "95 % interval", "the graph is")
RATIOS = (
    "The speedup is made of ratios taken pair by pair (the geometric mean of the launches' medians). So it is not the "
    "quotient of the two medians beside it, and may even lie on the other side of 1."
)
SENTENCES = (
    "Speedup is eager's time over the graph's, from calls timed in turn in one process: above 1 the graph is faster, "
    "and at 1, the dashed line, both take the same time.",
    "The line through a point is its 95 % interval. Where it crosses 1, no difference was shown, however far the point "
    "lies from 1.",
    RATIOS,
)


def section(material: Material) -> Section | None:
    """One panel for each setting that has graph modes."""
    graphs = [point for point in material.points.all if not point.eager]
    eager = {_place(point): point for point in material.points.measured if point.eager}
    groups = list(grouped(graphs, lambda point: point.setting).values())
    if not groups:
        return None
    names = material.points.series
    few = [point for point in graphs if facts.few_launches(point) and _told(point) in facts.DIFFERENT]
    sentences = (*SENTENCES, *([FEW_LAUNCHES] if few else []))
    return Section.of("speedup", "Eager against graph", sentences, groups, lambda group: _panel(group, eager, names))


def _place(point: Point) -> tuple:
    return point.setting, point.shape, point["framework"], point["machine_id"]


def _panel(group: list[Point], eager: dict, names: list[str]) -> Panel:
    table = Table.of(COLUMNS, group, lambda point: _row(point, eager.get(_place(point))))
    if not table.left_out:
        table = Table.of(COLUMNS, [*table.rows, *_means(group)])
    drawn = [
        {
            "row": point.shape,
            "series": point.series,
            "framework": point["framework"],
            "value": point["speedup_vs_eager"],
            "low": point["speedup_ci_low"],
            "high": point["speedup_ci_high"],
            "thin": facts.few_launches(point) is not None,
        }
        for point in group[: len(table.rows)]
        if point.measured and point["speedup_vs_eager"] is not None
    ]
    by_mode = len({row["row"] for row in drawn}) == 1
    if by_mode:  # modes under each other instead of side by side
        drawn = [row | {"row": row["series"]} for row in drawn]
    drawing = charts.dots(drawn, "speedup over eager (eager = 1)", names, mark=(1, "eager = 1"))
    words = f"Speedup over eager with 95 % intervals: {group[0].setting}. The table holds the same figures."
    return Panel(group[0].setting, table, Chart(drawing, words) if drawing else None)


def _told(point: Point) -> str:
    return "not beside eager" if point["speedup_vs_eager"] is None else facts.verdict(point.speedup)


def _row(point: Point, eager: Point | None) -> Row:
    if not point.measured:
        cells = (point.shape, point.series, "", "", "", "", point["status"])
        return Row(cells, point.tags)
    judged = _told(point)
    judged += facts.within(facts.few_launches(point)) if judged in facts.DIFFERENT else ""
    cells = (
        point.shape,
        point.series,
        number(eager["latency_ms_median"]) if eager else "",
        number(point["latency_ms_median"]),
        number(point["speedup_vs_eager"]),
        span(point["speedup_ci_low"], point["speedup_ci_high"]),
        judged + (" (noisy)" if is_noisy(point.record, "ratio") else ""),
    )
    return Row(cells, point.tags)


def _means(group: list[Point]) -> list[Row]:
    """The geometric mean of each mode's speedups, for the end of the table that holds its parts."""
    rows = []
    for points in grouped(group, lambda point: point.series).values():
        speedups = [p["speedup_vs_eager"] for p in points if p.measured and p["speedup_vs_eager"] is not None]
        if len(speedups) > 1:
            mean = math.exp(sum(map(math.log, speedups)) / len(speedups))
            title = f"geometric mean of {len(speedups)}"
            cells = (title, points[0].series, "", "", Figure(text_of(mean), mean), "", "")
            rows.append(Row(cells, points[0].tags))
    return rows
