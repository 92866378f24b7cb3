"""A history as HTML that needs nothing else: a section with a row a cell, its chart drawn as SVG."""

from __future__ import annotations

import math
from html import escape

from measurement.statistics import Interval
from reports.content import text_of
from reports.trend import METHOD, TITLE, History, Line, answer, sentence

WIDTH, HEIGHT, MARGIN = 360, 56, 6
SHOWN = 1.1  # the least span of a chart: less would make scatter look like change
_STYLE = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 78rem; margin: 1rem auto; padding: 0 1rem }
table { border-collapse: collapse }
th, td { padding: .2rem .6rem; text-align: left; border-bottom: 1px solid #8884 }
svg { max-width: 100%; stroke: #3b7dd8; fill: #3b7dd8 }
.up { color: #c0392b } .down { color: #2f9e63 } .shared { color: #8a7a1f }
@media (max-width: 40rem) { tr, td { display: block; border: 0 } thead { display: none } }
"""
_HEADS = ("cell", "ms, first → last", "over the runs, with 95 % intervals", "steps")


def html(history: History) -> str:
    """The whole page."""
    return "\n".join(
        (
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{TITLE}</title><style>{_STYLE}</style></head>",
            f"<body>{section(history)}</body></html>",
            "",
        )
    )


def section(history: History) -> str:
    """The history as a part of a page."""
    runs = zip(history.labels, history.moments, strict=True)
    return "\n".join(
        (
            f'<section id="history"><h2>{TITLE}: {escape(answer(history))}</h2>',
            *(f"<p>{escape(text)}</p>" for text in (*history.cautions, history.names[1])),
            f"<table><thead><tr>{''.join(f'<th>{head}</th>' for head in _HEADS)}</tr></thead><tbody>",
            *(_row(history, line) for line in history.lines),
            "</tbody></table><details><summary>Runs</summary><ol>",
            *(f"<li>{escape(label)}: {escape(moment.name)}</li>" for label, moment in runs),
            f"</ol></details><p>{escape(METHOD)}</p></section>",
        )
    )


def _row(history: History, line: Line) -> str:
    looks = [("shared" if mark.shared else "up" if mark.ratio.value > 1 else "down", mark) for mark in line.steps]
    steps = "<br>".join(f'<span class="{look}">{escape(sentence(history, mark))}</span>' for look, mark in looks)
    cells = escape(history.name(line)), line.ends, drawing(history, line), steps
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def drawing(history: History, line: Line) -> str:
    """The chart of one line, on a logarithmic axis of its own; steps are dashed lines between two runs."""
    points = [(place, interval) for place, interval in enumerate(line.latency) if interval]
    low, high = min(i.low for _, i in points), max(i.high for _, i in points)
    room = max(0.0, math.log(SHOWN * low / high)) / 2
    bottom, span = math.log(low) - room, math.log(high / low) + 2 * room
    across = (WIDTH - 2 * MARGIN) / max(len(line.latency) - 1, 1)

    def at(place: float, value: float) -> tuple[str, str]:
        y = HEIGHT - MARGIN - (math.log(value) - bottom) / span * (HEIGHT - 2 * MARGIN)
        return f"{MARGIN + place * across:.1f}", f"{y:.1f}"

    path = " ".join(",".join(at(place, interval.value)) for place, interval in points)
    parts = [f'<polyline fill="none" points="{path}"/>']
    for mark in line.steps:
        x, _ = at(mark.at - 0.5, low)
        parts.append(f'<line x1="{x}" x2="{x}" y1="0" y2="{HEIGHT}" stroke-dasharray="2 3" stroke="currentColor"/>')
    for place, interval in points:
        (x, y), (_, top), (_, foot) = (at(place, v) for v in (interval.value, interval.high, interval.low))
        parts.append(f'<line x1="{x}" x2="{x}" y1="{top}" y2="{foot}"/>')
        parts.append(f'<circle cx="{x}" cy="{y}" r="2.5"><title>{_told(history, place, interval)}</title></circle>')
    label = escape(f"{history.name(line)}, {line.ends} ms")
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return f'<svg {size} role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _told(history: History, place: int, interval: Interval) -> str:
    ends = f"{text_of(interval.low)} to {text_of(interval.high)}"
    return escape(f"{history.labels[place]}: {text_of(interval.value)} ms ({ends})")
