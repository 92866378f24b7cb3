"""Charts as SVG, drawn when the report is made: no script, no library in the page.

Places along x are percentages, so that a chart is as wide as its place while its texts keep their size. Colours of
texts and lines are the page's (classes `ink`, `soft`, `rule`); a picture that stands alone brings `style` along.
A mode looks alike everywhere: hue says the framework, shape the mode, and eager mode is hollow.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from analysis.points import Point

# Of frameworks whose description names no colour; which one depends on the name alone.
OTHERS = ("#1f93a8", "#2f9e63", "#c94f7c", "#7c6f64", "#5b6ee1")
ABSENT = "#8b93a0"  # what is shown and not ranked
# Symbols of graph modes, about as large to the eye, in a box from -6 to 6.
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
)
# Of graph modes' lines.
DASHES = ("none", "8 3", "10 3 2 3", "14 4", "4 4", "8 3 2 3 2 3", "12 3 5 3", "5 2", "16 3 2 3")
MOST_TICKS = 6
LEAST = 4.0  # the factor that an axis spans at least, or noise would fill the chart
ROW, AXIS, STRIP = 34, 26, 42  # heights
TRACK = 24  # of a row, where its marks lie; all else is placed from there
NAME = -12  # of a row, where its name stands
BAR = 12  # height of a step's bar
VALUE = 22  # percent of a narrow chart that a value takes
HEIGHT, SHARE = 260, 40  # of a chart of curves, and of a row of shares
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
    """Return what charts refer to, once in a page: symbols, and the look of mode n, which is `known[n]`."""
    paths = "".join(f'<path id="s{n}" d="{path}"/>' for n, path in enumerate(PATHS))
    rules = "".join(f'[data-mode="{n}"]{{--hue:{one.colour};--dash:{one.dash}}}' for n, one in enumerate(known))
    style = f"<style>{rules}.row.absent{{color:{ABSENT};--hue:{ABSENT}}}</style>"
    return f'<svg width="0" height="0" style="position:absolute" aria-hidden="true">{style}<defs>{paths}</defs></svg>'


def mark(look: Look, x: str = "", title: str = "", more: str = "") -> str:
    """Return a mode's symbol at a place along x, in the colour around it; `title` shows when one points at it."""
    place = f' x="{x}"' if x else ""
    hollow = ' class="hollow"' if look.hollow else ""
    begun = f'<use href="#s{look.symbol}"{place}{hollow}{more}'
    return f"{begun}><title>{title}</title></use>" if title else f"{begun}/>"


def coloured(look: Look) -> str:
    """Return the attribute that colours symbols and intervals that lie within."""
    return f' color="{look.colour}"'


def tagged(look: Look, mode: str) -> str:
    """Return the attribute that colours a mode's marks: its number, whose look the page has, or its colour."""
    return f' data-mode="{mode}"' if mode else coloured(look)


def style(colours: Mapping[str, str]) -> str:
    """Return the style of a picture that stands alone: `ink`, `soft`, `line` and `ground` as #rrggbb."""
    return (
        f"text{{font-size:13px;fill:{colours['ink']};stroke:none}}.title{{font-size:15px;font-weight:600}}"
        f".row text[x]{{font-weight:600}}.soft,.axis text{{fill:{colours['soft']};font-size:12px}}"
        ".axis text{text-anchor:middle}"
        f".rule{{stroke:{colours['line']};vector-effect:non-scaling-stroke}}"
        "use{stroke-width:2;fill:currentColor;stroke:currentColor}"
        f".hollow{{fill:{colours['ground']}}}line{{stroke:currentColor;stroke-width:3;stroke-opacity:.45}}"
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
        """Return the place of a figure as it is written."""
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
        body.append(f'<text y="{n * SHARE + 13}" >{escape(name)}</text>')
        for part, amount in amounts:
            width = 100 * amount / whole
            title = f"<title>{escape(part)}: {width:.0f} %</title>"
            colour = TONES[parts.index(part) % len(TONES)]
            box = f'x="{begun:.4g}%" y="{n * SHARE + 18}" width="{width:.4g}%" height="16" fill="{colour}"'
            body.append(f"<rect {box}>{title}</rect>")
            begun += width
    names = "".join(
        f'<li><i style="background:{TONES[n % len(TONES)]}"></i> {escape(part)}</li>' for n, part in enumerate(parts)
    )
    chart = f'<svg width="100%" height="{len(rows) * SHARE}">{"".join(body)}</svg>'
    return f'{chart}<ul class="legend">{names}</ul>'
