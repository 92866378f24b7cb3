"""Gain of each step from eager mode to a framework's last graph: a waterfall for each ladder, and its figures."""

from __future__ import annotations

from analysis.ladders import Ladder
from reports import drawing
from reports.content import Chart, Panel, Section
from reports.ladder import sentences, table, title
from reports.numbers import multiple, text_of
from reports.report_data import ReportData

SENTENCES = (
    "Each rung adds something to the rung before; all rungs of a shape were interleaved in the same processes. A "
    "step's ratio is the time before over the time after; the product of all steps is the whole speedup.",
    "Some rungs are not for deployment: they only divide a larger step.",
)
AXIS = (
    "ms per call, lower is better; the axis is logarithmic, lines are 95 % intervals; a bar's length is the step's "
    "ratio, and grey bars are slowdowns"
)


def section(data: ReportData) -> Section | None:
    """Return a panel for each ladder."""
    if not data.ladders:
        return None
    make = lambda ladder: _panel(data, ladder)  # noqa: E731
    return Section.make("ladder", "What each step brings", SENTENCES, data.ladders, make)


def _panel(data: ReportData, ladder: Ladder) -> Panel:
    charts: tuple[Chart, ...] = ()
    if ladder.rungs:
        words = "Latency from rung to rung; the table holds the same figures"
        charts = (Chart(_drawn(data, ladder), words),)
    return Panel(title(ladder), table(ladder), charts, tuple(sentences(ladder)), axes=AXIS if charts else "")


def _drawn(data: ReportData, ladder: Ladder) -> str:
    look = data.looks[ladder.first.framework, ladder.rungs[0].mode]
    steps = []
    for rung, step in zip(ladder.rungs, (None, *ladder.steps), strict=True):
        text = f"{text_of(rung.median_ms)} ms"
        if step and step.ratio:
            text += f" · {multiple(step.ratio)}"
        low, high = (rung.latency.low, rung.latency.high) if rung.latency else (None, None)
        steps.append(drawing.Dot(rung.mode, look, rung.median_ms, text, low, high, rung.adds))
    return drawing.waterfall(steps)
