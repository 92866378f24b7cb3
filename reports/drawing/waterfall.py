"""A way in steps on a logarithmic axis: a bar from each figure to the next, so that factors are lengths and add up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from reports.drawing.identity import ABSENT, Look, coloured
from reports.drawing.marks import AXIS, NAME, ROW, TRACK, axis, framed
from reports.drawing.scales import Scale

BAR = 12  # height


@dataclass(frozen=True)
class Fall:
    """A figure with its name, itself in words, what it adds (`note`), and its interval."""

    name: str
    note: str
    value: float
    text: str
    low: float | None = None
    high: float | None = None


def waterfall(rows: Sequence[Fall], look: Look) -> str:
    """Return a line a figure; its bar begins at the figure before it and is grey where it leads upwards."""
    scale = Scale.fit([value for row in rows for value in (row.value, row.low, row.high)])
    begins = [None, *(row.value for row in rows[:-1])]
    body = "".join(
        _fall(row, begin, scale, AXIS + TRACK + n * ROW)
        for n, (row, begin) in enumerate(zip(rows, begins, strict=True))
    )
    height = AXIS + ROW * len(rows)
    return framed(f"{axis(scale, height, [])}<g{coloured(look)}>{body}</g>", height + 4)


def _fall(row: Fall, begin: float | None, scale: Scale, y: float) -> str:
    here, there = scale.at(row.value), scale.begin if begin is None else scale.at(begin)
    left, width = min(here, there), max(abs(here - there), 0.2)
    fill = ABSENT if begin is not None and row.value > begin else "currentColor"
    faint = ' fill-opacity=".35"' if begin is None else ""
    note = f'<tspan class="soft note" dx="6">{escape(row.note)}</tspan>'
    text = f'{escape(row.name)}<tspan class="value" dx="6">{escape(row.text)}</tspan>{note}'
    bar = f'<rect x="{left:.4g}%" y="{-BAR // 2}" width="{width:.4g}%" height="{BAR}" fill="{fill}"{faint}/>'
    ends = ""
    if row.low and row.high:
        span = f'x1="{scale(row.low)}" x2="{scale(row.high)}"'
        ends = f'<line style="color:var(--ink,#444)" {span}/>'
    return f'<g class="row" transform="translate(0 {y:g})"><text y="{NAME}">{text}</text>{bar}{ends}</g>'
