"""Charts drawn when the report is made: no script, no library in the page.

A chart of rows is HTML: names on the left, values on the right, and between them a track of SVG whose places along x
are percentages. Colours of texts and lines are the page's; a standalone picture includes `style`. A mode looks the same
everywhere: hue shows the framework, shape the mode, and eager mode is hollow.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from analysis.points import Point

# For frameworks whose description has no colour; the name alone selects it.
OTHERS = ("#1f93a8", "#2f9e63", "#c94f7c", "#7c6f64", "#5b6ee1")
BACK = "#8b93a0"  # a step in the other direction
# Symbols of graph modes, of similar visual size, in a box from -6 to 6.
PATHS = (
    "M0-5.2A5.2 5.2 0 1 1 0 5.2 5.2 5.2 0 1 1 0-5.2Z",
    "M-4.7-4.7H4.7V4.7H-4.7Z",
    "M0-6 6 5H-6Z",
    "M0-6.5 6.5 0 0 6.5-6.5 0Z",
    "M0 6-6-5H6Z",
    "M-2-6H2V-2H6V2H2V6H-2V2H-6V-2H-2Z",
    "M-6-3.5H6V3.5H-6Z",
    "M-3.5-6H3.5V6H-3.5Z",
    "M-6 0-3-5.2H3L6 0 3 5.2H-3Z",
    "M-4.5-6 0-1.5 4.5-6 6-4.5 1.5 0 6 4.5 4.5 6 0 1.5-4.5 6-6 4.5-1.5 0-6-4.5Z",
    "M0-6 1.8-2 6-1.9 2.9 1 4 5.5 0 3-4 5.5-2.9 1-6-1.9-1.8-2Z",
    "M0-6 6-1.5 3.7 5.2H-3.7L-6-1.5Z",
)
# Of graph modes' lines.
DASHES = (
    "none",
    "8 3",
    "10 3 2 3",
    "14 4",
    "4 4",
    "8 3 2 3 2 3",
    "12 3 5 3",
    "5 2",
    "16 3 2 3",
    "3 2 8 2",
    "20 4",
    "6 6",
)
MOST_TICKS = 6
LEAST = 4.0  # the factor that an axis spans at least, or noise would fill the chart
ROW = 24  # height of a row's track, whose marks are in its middle
BAR = 12  # height of a bar
HEIGHT = 260  # of a chart of curves
TONES = ("#3b7dd8", "#d1622b", "#2f9e63", "#a05cc9", "#c94f7c", "#8a7a1f", "#1f93a8", "#7c6f64", "#e0484d", "#5b6ee1")


@dataclass(frozen=True)
class Look:
    """A mode's colour and symbol; `hollow` for eager mode."""

    colour: str
    symbol: int
    hollow: bool

    @property
    def dash(self) -> str:
        """Return the dashes of its line in a chart."""
        return "2 3" if self.hollow else DASHES[self.symbol]


def looks(points: Iterable[Point], known: Mapping) -> dict[tuple[str, str], Look]:
    """Return the look of every mode by framework and mode."""
    looks_by_mode: dict[tuple[str, str], Look] = {}
    for point in points:
        who = point.record.framework, point.record.mode
        if who in looks_by_mode:
            continue
        words = known.get(who)
        place = words.place if words and words.place else sum(name == who[0] for name, _ in looks_by_mode)
        looks_by_mode[who] = Look(hue(who[0], known), 0 if point.eager else max(place - 1, 0) % len(PATHS), point.eager)
    return looks_by_mode


def hue(framework: str, known: Mapping) -> str:
    """Return a framework's colour."""
    colour = next((words.colour for (name, _), words in known.items() if name == framework and words.colour), "")
    return colour or OTHERS[zlib.crc32(framework.encode()) % len(OTHERS)]


def symbols(known: Sequence[Look] = ()) -> str:
    """Return the definitions of all charts, once per page: symbols, and the look of mode n, which is `known[n]`."""
    paths = "".join(f'<path id="s{n}" d="{path}"/>' for n, path in enumerate(PATHS))
    rules = "".join(f'[data-mode="{n}"]{{--hue:{one.colour};--dash:{one.dash}}}' for n, one in enumerate(known))
    style = f"<style>{rules}</style>" if rules else ""
    return f'<svg width="0" height="0" style="position:absolute" aria-hidden="true">{style}<defs>{paths}</defs></svg>'


def mark(look: Look, x: str) -> str:
    """Return a mode's symbol at a place along x, in the middle of its track and in the colour around it."""
    hollow = ' class="hollow"' if look.hollow else ""
    return f'<use href="#s{look.symbol}" x="{x}" y="{ROW // 2}"{hollow}/>'


def style(colours: Mapping[str, str]) -> str:
    """Return the style of a standalone picture: `ink`, `soft`, `line` and `ground` as #rrggbb."""
    return (
        f"text{{font-size:13px;fill:{colours['ink']};stroke:none}}.title{{font-size:15px;font-weight:600}}"
        f".value{{font-weight:600}}.soft,.axis text{{fill:{colours['soft']};font-size:12px}}"
        f".axis text{{text-anchor:middle}}.axis line{{stroke:{colours['line']};stroke-width:1;stroke-opacity:1}}"
        "use{stroke-width:2;fill:currentColor;stroke:currentColor}"
        f".hollow{{fill:{colours['ground']}}}line{{stroke:currentColor;stroke-width:3;stroke-opacity:.8}}"
    )


@dataclass(frozen=True)
class Scale:
    """A logarithmic axis from `low` to `high`, both above 0, between two percentages of its length."""

    low: float
    high: float
    begin: float = 2.0
    end: float = 98.0

    @classmethod
    def fit(cls, values: Iterable[float | None], begin: float = 2.0, end: float = 98.0) -> Scale:
        """Return the scale that shows all these figures, with a little room; it spans a factor of `LEAST` or more."""
        known = [value for value in values if value and value > 0] or [1.0]
        low, high = min(known), max(known)
        room = max(math.sqrt(LEAST * low / high), 1.08)
        return cls(low / room, high * room, begin, end)

    def at(self, value: float) -> float:
        """Return the place of a figure in percent."""
        share = math.log(value / self.low) / math.log(self.high / self.low)
        return self.begin + (self.end - self.begin) * share

    def __call__(self, value: float) -> str:
        """Return the place of a figure as text."""
        return f"{self.at(value):.3g}%"

    @property
    def ticks(self) -> list[float]:
        """Return round figures to be marked: 1, 2 and 5 in each decade, or decades alone where these are many."""
        low, high = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
        for steps in ((1, 2, 5), (1, 3), (1,)):
            ticks = [step * 10.0**power for power in range(low, high + 1) for step in steps]
            ticks = [tick for tick in ticks if self.low <= tick <= self.high]
            if len(ticks) <= MOST_TICKS:
                return ticks
        return ticks[:: math.ceil(len(ticks) / MOST_TICKS)]


def tick_text(value: float) -> str:
    """Return a round figure in few characters."""
    return f"{value:,.0f}" if 1 <= value < 1e7 else f"{value:g}" if value >= 1e-4 else f"{value:.0e}"


@dataclass(frozen=True)
class Dot:
    """A figure with its name, its value in words, and its interval; `note` follows the name."""

    name: str
    look: Look
    value: float
    text: str
    low: float | None = None
    high: float | None = None
    note: str = ""
    mode: str = ""  # its number in the page, which filters and colours by it


def scale_of(rows: Iterable[Dot]) -> Scale:
    """Return the axis that holds all figures and their intervals."""
    return Scale.fit([value for row in rows for value in (row.value, row.low, row.high)])


def dots(rows: Sequence[Dot]) -> str:
    """Return a row for each figure: its name, its mark with its interval, and its value."""
    scale = scale_of(rows)
    return _plot(scale, rows, [track(row, scale) for row in rows])


def track(row: Dot, scale: Scale) -> str:
    """Return the interval and the mark of a figure, in SVG."""
    title = f"<title>{escape(f'{row.name}: {row.text}')}</title>"
    return f"{title}{_interval(row, scale)}{mark(row.look, scale(row.value))}"


def _interval(row: Dot, scale: Scale, style: str = "") -> str:
    if not (row.low and row.high):
        return ""
    return f'<line{style} x1="{scale(row.low)}" x2="{scale(row.high)}" y1="{ROW // 2}" y2="{ROW // 2}"/>'


def waterfall(rows: Sequence[Dot]) -> str:
    """Return a row for each figure; its bar begins at the figure before it and is grey where it leads upwards.

    On the logarithmic axis factors are lengths and add up.
    """
    scale = scale_of(rows)
    begins = [None, *(row.value for row in rows[:-1])]
    return _plot(scale, rows, [_bar(row, begin, scale) for row, begin in zip(rows, begins, strict=True)])


def _bar(row: Dot, begin: float | None, scale: Scale) -> str:
    here, there = scale.at(row.value), scale.begin if begin is None else scale.at(begin)
    left, width = min(here, there), max(abs(here - there), 0.2)
    fill = BACK if begin is not None and row.value > begin else "currentColor"
    faint = ' fill-opacity=".35"' if begin is None else ""
    place = f'x="{left:.4g}%" y="{(ROW - BAR) // 2}" width="{width:.4g}%" height="{BAR}"'
    return f'<rect {place} fill="{fill}"{faint}/>{_interval(row, scale, " class=ends")}'


def _plot(scale: Scale, rows: Sequence[Dot], tracks: Sequence[str]) -> str:
    """Return rows under an axis of milliseconds."""
    head = f'<div class="line axis"><span>ms</span><svg class="track">{axis(scale, 4000)}</svg><span></span></div>'
    return f'<div class="plot">{head}{"".join(map(_row, rows, tracks))}</div>'


def _row(row: Dot, content: str) -> str:
    note = f" <small>{escape(row.note)}</small>" if row.note else ""
    colour = f' data-mode="{row.mode}"' if row.mode else f' style="color:{row.look.colour}"'
    name = f'<span class="name">{escape(row.name)}{note}</span>'
    return f'<div class="line"{colour}>{name}<svg class="track">{content}</svg><b>{escape(row.text)}</b></div>'


def axis(scale: Scale, height: float) -> str:
    """Return marked figures with lines downwards."""
    return "".join(
        f'<line x1="{scale(tick)}" x2="{scale(tick)}" y1="18" y2="{height:g}"/>'
        f'<text x="{scale(tick)}" y="13">{tick_text(tick)}</text>'
        for tick in scale.ticks
    )


@dataclass(frozen=True)
class Curve:
    """Points (x, y), both above 0, of one series; `mode` is its number in the page, which has its colour and dashes.

    `band` holds (x, low, high), an interval around the line.
    """

    name: str
    mode: str
    points: tuple[tuple[float, float], ...]
    band: tuple[tuple[float, float, float], ...] = ()


def curves(rows: Sequence[Curve]) -> str:
    """Return curves with both axes logarithmic; `legend` names them."""
    across = Scale.fit((x for row in rows for x, _ in row.points), begin=14, end=92)
    heights = [
        y for row in rows for y in (*(y for _, y in row.points), *(end for _, *ends in row.band for end in ends))
    ]
    up = Scale.fit(heights, begin=92, end=6)
    ways = "".join(f"M{across.at(t):.3g} 6V92" for t in across.ticks)
    ways += "".join(f"M14 {up.at(t):.3g}H95" for t in up.ticks)
    below = "".join(f'<text x="{across(t)}" y="99%">{tick_text(t)}</text>' for t in across.ticks)
    beside = "".join(f'<text x="13%" y="{up(t)}" dy="4">{tick_text(t)}</text>' for t in up.ticks)
    grid = f'<g class="axis">{below}</g><g class="axis up">{beside}</g>'
    body = "".join(_curve(row, across, up) for row in rows)
    marks = "".join(_marks(row, across, up) for row in rows)
    # The picture is stretched, its strokes are not.
    plot = f'<svg viewBox="0 0 100 100" preserveAspectRatio="none"><path class="rule" d="{ways}"/>{body}</svg>'
    return f'<svg width="100%" height="{HEIGHT}">{grid}{plot}{marks}</svg>'


def _curve(row: Curve, across: Scale, up: Scale) -> str:
    path = " ".join(f"{across.at(x):.1f},{up.at(y):.1f}" for x, y in row.points)
    line = f'<polyline data-mode="{row.mode}" points="{path}"/>'
    if not row.band:
        return line
    around = [(x, low) for x, low, _ in row.band] + [(x, high) for x, _, high in reversed(row.band)]
    corners = " ".join(f"{across.at(x):.2f},{up.at(y):.2f}" for x, y in around)
    return f'<polygon class="band" data-mode="{row.mode}" points="{corners}"/>{line}'


def _marks(row: Curve, across: Scale, up: Scale) -> str:
    """Return a mark at each point; a line in a band has too many."""
    if row.band:
        return ""
    circles = "".join(f'<circle cx="{across(x)}" cy="{up(y)}" r="4"/>' for x, y in row.points)
    return f'<g data-mode="{row.mode}">{circles}</g>'


def legend(names: Mapping[str, str]) -> str:
    """Return the names of curves by their modes' numbers, each with a piece of its line."""
    line = '<svg class="line"><line x2="30" y1="5" y2="5"/></svg>'
    items = "".join(f'<li data-mode="{mode}">{line} {escape(name)}</li>' for mode, name in names.items())
    return f'<ul class="legend">{items}</ul>'


def stacks(rows: Sequence[tuple[str, Sequence[tuple[str, float]]]]) -> str:
    """Return a bar of milliseconds for each row: (name, ((part, milliseconds), …)); parts keep their colour."""
    parts = list(dict.fromkeys(part for _, amounts in rows for part, _ in amounts))
    longest = max((sum(amount for _, amount in amounts) for _, amounts in rows), default=0.0) or 1.0
    lines = []
    for name, amounts in rows:
        left, boxes = 0.0, ""
        for part, amount in amounts:
            width = 100 * amount / longest
            box = f'x="{left:.4g}%" y="4" width="{width:.4g}%" height="16" fill="{_tone(parts, part)}"'
            boxes += f"<rect {box}><title>{escape(part)}: {amount:.3g} ms</title></rect>"
            left += width
        whole = f"<b>{sum(amount for _, amount in amounts):.3g} ms</b>"
        track = f'<svg class="track">{boxes}</svg>'
        lines.append(f'<div class="line"><span class="name">{escape(name)}</span>{track}{whole}</div>')
    names = "".join(f'<li><i style="background:{_tone(parts, part)}"></i> {escape(part)}</li>' for part in parts)
    return f'<div class="plot">{"".join(lines)}</div><ul class="legend">{names}</ul>'


def _tone(parts: Sequence[str], part: str) -> str:
    return TONES[parts.index(part) % len(TONES)]
