"""Places where users' own models leave their graphs, with reasons and costs; and recompilations."""

from __future__ import annotations

import json
from collections import defaultdict

from analysis.points import Point
from measurement.text import times
from reports.content import Panel, Row, Section, Table, number
from reports.numbers import text_of
from reports.report_data import ReportData

PRICES = ("framework", "mode", "workload", "shape", "graphs", "breaks", "outside of graphs, %", "at best, ×")
PLACES = ("framework", "mode", "workload", "place", "why", "cells")
SENTENCE = (
    "Outside of graphs the model runs operator by operator. The share comes from calls that wait for each graph. "
    '"At best" is the speedup if everything outside of graphs took no time.'
)


def section(data: ReportData) -> Section | None:
    """Return the section on broken or recompiled models, each with its cost and a row per place; None without any."""
    points = [p for p in data.points.all if p.record.graph_break_places or p.record.recompiled_places]
    if not points:
        return None
    broken = [point for point in points if point.record.graph_break_places]
    panels = [Panel("Breaks by place", Table.make(PLACES, _places(broken, "graph_break_places")))] if broken else []
    panels += [Panel("What they cost", Table.make(PRICES, list(map(_price, broken))))] if broken else []
    again = _places([point for point in points if point.record.recompiled_places], "recompiled_places")
    panels += [Panel("Compiled again", Table.make(PLACES, again))] if again else []
    worst = max(broken, key=lambda point: point.record.gain_at_best or 0.0, default=None)
    sentences = [f"{times(len(broken), 'cell')} {'is' if len(broken) == 1 else 'are'} broken into several graphs."]
    if worst and worst.record.gain_at_best:
        place = f"{worst.series}, {worst.record.workload} {worst.shape}"
        gain = text_of(worst.record.gain_at_best)
        sentences.append(f"{place} has the largest possible gain: at best {gain}×.")
    return Section("breaks", "Graph breaks", (SENTENCE, *sentences) if broken else (), tuple(panels), 1)


def _places(points: list[Point], column: str) -> list[Row]:
    """Return a row for each place of a framework's mode and workload, with how many cells have it."""
    cells: dict[tuple[str, ...], int] = defaultdict(int)
    for point in points:
        for place, why in json.loads(getattr(point.record, column)):
            cells[point.record.framework, point.record.mode, point.record.workload, place, why] += 1
    return [Row((*key, number(count))) for key, count in cells.items()]


def _price(point: Point) -> Row:
    share, gain = point.record.outside_share, point.record.gain_at_best
    figures = (point.record.graphs, point.record.graph_breaks, None if share is None else 100 * share, gain)
    texts = ("" if value is None else number(value) for value in figures)
    return Row((point.record.framework, point.record.mode, point.record.workload, point.shape, *texts))
