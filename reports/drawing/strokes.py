"""Curves over a logarithmic axis, and stacked shares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from reports.drawing.scales import Scale, tick_text

HEIGHT, BAR = 260, 40
TONES = ("#3b7dd8", "#d1622b", "#2f9e63", "#a05cc9", "#c94f7c", "#8a7a1f", "#1f93a8", "#7c6f64", "#e0484d", "#5b6ee1")


@dataclass(frozen=True)
class Curve:
    """Points (x, y), both above 0, of one series; `mode` is its number in the page, which has its colour and dashes."""

    name: str
    mode: str
    points: tuple[tuple[float, float], ...]


def curves(rows: Sequence[Curve]) -> str:
    """Return curves with both axes logarithmic; `legend` names them."""
    across = Scale.fit((x for row in rows for x, _ in row.points), begin=10, end=92)
    up = Scale.fit((y for row in rows for _, y in row.points), begin=92, end=6)
    ways = "".join(f"M{across.at(t):.3g} 6V92" for t in across.ticks)
    ways += "".join(f"M10 {up.at(t):.3g}H95" for t in up.ticks)
    below = "".join(f'<text x="{across(t)}" y="99%">{tick_text(t)}</text>' for t in across.ticks)
    beside = "".join(f'<text x="9%" y="{up(t)}" dy="4">{tick_text(t)}</text>' for t in up.ticks)
    grid = f'<g class="axis">{below}</g><g class="axis up">{beside}</g>'
    body = "".join(_curve(row, across, up) for row in rows)
    marks = "".join(_marks(row, across, up) for row in rows)
    # Stretched to its place, with strokes that are not.
    plot = f'<svg viewBox="0 0 100 100" preserveAspectRatio="none"><path class="rule" d="{ways}"/>{body}</svg>'
    return f'<svg width="100%" height="{HEIGHT}">{grid}{plot}{marks}</svg>'


def _curve(row: Curve, across: Scale, up: Scale) -> str:
    path = " ".join(f"{across.at(x):.1f},{up.at(y):.1f}" for x, y in row.points)
    return f'<polyline data-mode="{row.mode}" points="{path}"/>'


def _marks(row: Curve, across: Scale, up: Scale) -> str:
    circles = "".join(f'<circle cx="{across(x)}" cy="{up(y)}" r="4"/>' for x, y in row.points)
    return f'<g data-mode="{row.mode}">{circles}</g>'


def legend(names: Mapping[str, str]) -> str:
    """Return the names of curves by their modes' numbers, each with a piece of its line."""
    line = '<svg class="line"><line x2="30" y1="5" y2="5"/></svg>'
    items = "".join(f'<li data-mode="{mode}">{line} {escape(name)}</li>' for mode, name in names.items())
    return f'<ul class="legend">{items}</ul>'


def shares(rows: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> str:
    """Return a bar for each row that sums to 100 %: (name, ((part, amount), …)); parts keep their colour."""
    parts = list(dict.fromkeys(part for _, amounts in rows for part, _ in amounts))
    body = []
    for n, (name, amounts) in enumerate(rows):
        whole, begun = sum(amount for _, amount in amounts) or 1.0, 0.0
        body.append(f'<text y="{n * BAR + 13}" >{escape(name)}</text>')
        for part, amount in amounts:
            width = 100 * amount / whole
            title = f"<title>{escape(part)}: {width:.0f} %</title>"
            colour = TONES[parts.index(part) % len(TONES)]
            box = f'x="{begun:.4g}%" y="{n * BAR + 18}" width="{width:.4g}%" height="16" fill="{colour}"'
            body.append(f"<rect {box}>{title}</rect>")
            begun += width
    names = "".join(
        f'<li><i style="background:{TONES[n % len(TONES)]}"></i> {escape(part)}</li>' for n, part in enumerate(parts)
    )
    chart = f'<svg width="100%" height="{len(rows) * BAR}">{"".join(body)}</svg>'
    return f'{chart}<ul class="legend">{names}</ul>'
