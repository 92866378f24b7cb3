"""Figures along a logarithmic axis: one a line with its name and value, all of a shape on a line, or steps as bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from reports.drawing.identity import ABSENT, Look, coloured, mark, tagged
from reports.drawing.scales import Scale, tick_text

ROW, AXIS, STRIP = 34, 26, 42  # heights
TRACK = 24  # of a row, where its marks lie; all else is placed from there
NAME = -12  # of a row, where its name stands
BAR = 12  # height of a step's bar
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
    scale = _scale(rows)
    return _chart(scale, [_dot(row, scale) for row in rows])


def _scale(rows: Sequence[Dot]) -> Scale:
    return Scale.fit([value for row in rows for value in (row.value, row.low, row.high)])


def _dot(row: Dot, scale: Scale) -> tuple[str, str]:
    note = f'<tspan class="soft" dx="6">{escape(row.note)}</tspan>' if row.note else ""
    soft = ' class="soft"' if row.absent else ""
    x, left = _beside(row, scale)
    anchor, shift = (' text-anchor="end"', -11) if left else ("", 11)
    body = (
        f'<text y="{NAME}"{soft}>{escape(row.name)}{note}</text>{_interval(row, scale)}'
        f"{mark(row.look, scale(row.value))}"
        f'<text x="{x:.3g}%" dx="{shift}" y="4"{anchor}>{escape(row.text)}</text>'
    )
    return f' class="{"row absent" if row.absent else "row"}"{tagged(row.look, row.mode)}', body


def _beside(row: Dot, scale: Scale) -> tuple[float, bool]:
    """Return where the value stands in percent, and whether left of that: next to the interval if there is room."""
    place = scale.at(row.value)
    low, high = min(scale.at(row.low or row.value), place), max(scale.at(row.high or row.value), place)
    if place <= 70 and high <= 100 - VALUE:
        return high, False
    return (low, True) if low >= VALUE else (place, place > 50)


def _interval(row: Dot, scale: Scale, style: str = "") -> str:
    return f'<line{style} x1="{scale(row.low)}" x2="{scale(row.high)}"/>' if row.low and row.high else ""


def spread(rows: Sequence[tuple[str, dict[str, str], Sequence[Dot]]]) -> str:
    """Return a line for each shape, with the marks of all its figures on it; rows are (name, tags, figures)."""
    scale = Scale.fit(dot.value for _, _, figures in rows for dot in figures)
    lines = []
    for name, tags, figures in rows:
        marks = "".join(
            mark(dot.look, scale(dot.value), escape(f"{dot.name}: {dot.text}"), tagged(dot.look, dot.mode))
            for dot in figures
        )
        attributes = "".join(f' data-{key}="{escape(value, quote=True)}"' for key, value in tags.items())
        lines.append((f' class="row"{attributes}', f'<text y="{NAME}">{escape(name)}</text>{marks}'))
    return _chart(scale, lines, STRIP)


def waterfall(rows: Sequence[Dot]) -> str:
    """Return a line for each figure; its bar begins at the figure before it and is grey where it leads upwards.

    On the logarithmic axis factors are lengths and add up.
    """
    scale = _scale(rows)
    begins = [None, *(row.value for row in rows[:-1])]
    bars = [_bar(row, begin, scale) for row, begin in zip(rows, begins, strict=True)]
    return _chart(scale, bars, tracks=False)


def _bar(row: Dot, begin: float | None, scale: Scale) -> tuple[str, str]:
    here, there = scale.at(row.value), scale.begin if begin is None else scale.at(begin)
    left, width = min(here, there), max(abs(here - there), 0.2)
    fill = ABSENT if begin is not None and row.value > begin else "currentColor"
    faint = ' fill-opacity=".35"' if begin is None else ""
    note = f'<tspan class="soft note" dx="6">{escape(row.note)}</tspan>'
    text = f'{escape(row.name)}<tspan class="value" dx="6">{escape(row.text)}</tspan>{note}'
    bar = f'<rect x="{left:.4g}%" y="{-BAR // 2}" width="{width:.4g}%" height="{BAR}" fill="{fill}"{faint}/>'
    ends = _interval(row, scale, ' style="color:var(--ink,#444)"')
    return f' class="row"{coloured(row.look)}', f'<text y="{NAME}">{text}</text>{bar}{ends}'


def _chart(scale: Scale, rows: Sequence[tuple[str, str]], step: int = ROW, tracks: bool = True) -> str:
    """Return rows, each attributes and a body, below each other under an axis; `tracks` are lines across."""
    height, places = AXIS + step * len(rows), [AXIS + TRACK + n * step for n in range(len(rows))]
    body = axis(scale, height, places if tracks else ()) + "".join(
        f'<g{attributes} transform="translate(0 {y})">{content}</g>'
        for y, (attributes, content) in zip(places, rows, strict=True)
    )
    return f'<svg width="100%" height="{height + 4}" data-step="{step}" data-top="{AXIS + TRACK}">{body}</svg>'


def axis(scale: Scale, height: float, tracks: Sequence[float]) -> str:
    """Return marked figures with lines downwards, and a line across for each row."""
    ways = "".join(f"M{scale.at(tick):.3g} 18V{height:g}" for tick in scale.ticks)
    ways += "".join(f"M0 {y:g}H100" for y in tracks)
    frame = f'height="{height:g}" viewBox="0 0 100 {height:g}" preserveAspectRatio="none"'
    lines = f'<svg {frame}><path class="rule" d="{ways}"/></svg>'  # stretched, with strokes that are not
    texts = "".join(
        f'<text x="{scale(tick)}" y="13">{tick_text(tick)}</text>' for tick in scale.ticks if 5 < scale.at(tick) < 95
    )
    return f'<g class="axis">{lines}{texts}</g>'
