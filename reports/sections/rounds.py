"""The page of a run of fresh processes: one section, with a look for each strategy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from statistics import fmean

from analysis.rounds import Arm
from measurement.starts import EAGER
from measurement.text import times
from reports import drawing
from reports.content import Chart, Section
from reports.page import fragment, template

DECADES, POINTS_A_DECADE = 6, 8  # of calls on the horizontal axis
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


def curve(arm: Arm) -> Curve:
    """Return mean seconds over calls, evenly spread on a logarithmic axis, and their band where it is known."""
    points, band = [], []
    for calls in dict.fromkeys(round(10 ** (step / POINTS_A_DECADE)) for step in range(DECADES * POINTS_A_DECADE + 1)):
        found = arm.after(calls)
        value = found.value if found else fmean(arm.seconds(one, calls) for one in arm.records)
        if math.isfinite(value):
            points.append((calls, value))
            band += [(calls, max(found.low, value / 10), found.high)] if found else []
    return tuple(points), tuple(band)
