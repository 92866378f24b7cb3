"""The page of a run of fresh processes: one section, with a look for each strategy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from measurement.starts import EAGER
from measurement.statistics import Interval
from measurement.text import times
from reports import drawing
from reports.content import Chart, Section
from reports.page import fragment, template

Curve = tuple[tuple[tuple[float, float], ...], tuple[tuple[float, float, float], ...]]  # points, band


def html(section: Section, strategies: Iterable[str], headings: Sequence[str], title: str, command: str) -> str:
    """Return the whole page; the strategy `eager` is hollow, and others differ by colour and symbol."""
    subtitle = headings[0] if len(headings) == 1 else times(len(headings), "cell")
    tones, paths = drawing.TONES, drawing.PATHS
    looks = [drawing.Look(tones[n % len(tones)], n % len(paths), name == EAGER) for n, name in enumerate(strategies)]
    body = (
        f"{drawing.symbols(looks)}<header><h1>{escape(title)}</h1><p>{escape(subtitle)}</p></header>"
        f"<main>{fragment(section)}</main><footer><p><code>{escape(command)}</code></p></footer>"
    )
    return template.page(title, body)


def charts(drawn: Mapping[str, Curve], strategies: Iterable[str], title: str) -> tuple[tuple[Chart, ...], str]:
    """Return a chart of a curve for each strategy, none without any, and its legend."""
    numbers = {name: str(place) for place, name in enumerate(strategies)}
    curves = [drawing.Curve(name, numbers[name], *curve) for name, curve in drawn.items()]
    legend = drawing.legend({numbers[name]: name for name in drawn})
    return ((Chart(drawing.curves(curves), title),) if curves else ()), legend


def curve(points: Iterable[tuple[float, float | None, Interval | None]]) -> Curve:
    """Return a line through the points at `calls` with a mean, and its band where there is an interval."""
    known = [(calls, value, interval) for calls, value, interval in points if value is not None]
    band = tuple((calls, max(its.low, value / 10), its.high) for calls, value, its in known if its)
    return tuple((calls, value) for calls, value, _ in known), band
