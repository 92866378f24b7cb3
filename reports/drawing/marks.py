"""Figures as marks along a logarithmic axis: one a line with its name and value, or a row of them for each shape."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from reports.drawing.identity import Look, mark, tagged
from reports.drawing.scales import Scale, tick_text

ROW, AXIS, STRIP = 34, 26, 42  # heights
TRACK = 24  # of a row, where its marks lie; all else is placed from there
NAME = -12  # of a row, where its name stands
VALUE = 22  # percent of a narrow chart that a value takes


@dataclass(frozen=True)
class Dot:
    """A figure with its name, its value in words, and its interval; `note` is said behind the name."""

    name: str
    look: Look
    value: float
    text: str
    low: float | None = None
    high: float | None = None
    note: str = ""
    mode: str = ""  # its number in the page, which filters and colours by it
    absent: bool = False


def dots(rows: Sequence[Dot]) -> str:
    """Return a line for each figure: its name above, its mark with the value beside it, and its interval."""
    scale = Scale.fit([value for row in rows for value in (row.value, row.low, row.high)])
    body = "".join(_dot(row, scale, AXIS + TRACK + n * ROW) for n, row in enumerate(rows))
    return framed(
        axis(scale, AXIS + ROW * len(rows), [AXIS + TRACK + n * ROW for n in range(len(rows))]) + body,
        AXIS + ROW * len(rows) + 4,
    )


def _dot(row: Dot, scale: Scale, y: float) -> str:
    note = f'<tspan class="soft" dx="6">{escape(row.note)}</tspan>' if row.note else ""
    soft = ' class="soft"' if row.absent else ""
    parts = [f'<text y="{NAME}"{soft}>{escape(row.name)}{note}</text>']
    if row.low and row.high:
        parts.append(_interval(scale, row.low, row.high))
    parts.append(mark(row.look, scale(row.value)))
    x, left = _beside(row, scale)
    anchor, shift = (' text-anchor="end"', -11) if left else ("", 11)
    parts.append(f'<text x="{x:.3g}%" dx="{shift}" y="4"{anchor}>{escape(row.text)}</text>')
    kind = "row absent" if row.absent else "row"
    return f'<g class="{kind}"{tagged(row.look, row.mode)} transform="translate(0 {y:g})">{"".join(parts)}</g>'


def _beside(row: Dot, scale: Scale) -> tuple[float, bool]:
    """Return where the value stands in percent, and whether left of that: next to the interval if there is room."""
    place = scale.at(row.value)
    low, high = min(scale.at(row.low or row.value), place), max(scale.at(row.high or row.value), place)
    if place <= 70 and high <= 100 - VALUE:
        return high, False
    return (low, True) if low >= VALUE else (place, place > 50)


def _interval(scale: Scale, low: float, high: float) -> str:
    return f'<line x1="{scale(low)}" x2="{scale(high)}"/>'


def spread(rows: Sequence[tuple[str, dict[str, str], Sequence[Dot]]]) -> str:
    """Return a line for each shape, with the marks of all its figures on it; rows are (name, tags, figures)."""
    scale = Scale.fit(dot.value for _, _, figures in rows for dot in figures)
    parts = []
    for n, (name, tags, figures) in enumerate(rows):
        marks = "".join(
            mark(dot.look, scale(dot.value), escape(f"{dot.name}: {dot.text}"), tagged(dot.look, dot.mode))
            for dot in figures
        )
        attributes = "".join(f' data-{key}="{escape(value, quote=True)}"' for key, value in tags.items())
        parts.append(
            f'<g class="row"{attributes} transform="translate(0 {AXIS + TRACK + n * STRIP})">'
            f'<text y="{NAME}">{escape(name)}</text>{marks}</g>'
        )
    height = AXIS + STRIP * len(rows)
    tracks = [AXIS + TRACK + n * STRIP for n in range(len(rows))]
    return framed(axis(scale, height, tracks) + "".join(parts), height + 4, step=STRIP)


def axis(scale: Scale, height: float, tracks: Sequence[float]) -> str:
    """Return marked figures with lines downwards, and a line across for each row."""
    ways = "".join(f"M{scale.at(tick):.3g} 18V{height:g}" for tick in scale.ticks)
    ways += "".join(f"M0 {y:g}H100" for y in tracks)
    lines = stretched(f'<path class="rule" d="{ways}"/>', height)
    texts = "".join(
        f'<text x="{scale(tick)}" y="13">{tick_text(tick)}</text>' for tick in scale.ticks if 5 < scale.at(tick) < 95
    )
    return f'<g class="axis">{lines}{texts}</g>'


def stretched(body: str, height: float) -> str:
    """Return what is drawn in percent along x, as wide as its place; strokes are not stretched."""
    frame = f'height="{height:g}" viewBox="0 0 100 {height:g}" preserveAspectRatio="none"'
    return f"<svg {frame}>{body}</svg>"


def framed(body: str, height: float, step: int = ROW) -> str:
    """Return a chart of rows."""
    return f'<svg width="100%" height="{height:g}" data-step="{step}" data-top="{AXIS + TRACK}">{body}</svg>'
