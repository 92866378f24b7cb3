"""Charts as Vega-Lite: estimates with their intervals, shares, tiles, rooflines. Rows go in, a chart comes out.

A chart is a dict in Vega-Lite's grammar, with its rows under `data`. A cell without a figure has no mark, never one at
zero. Axes are logarithmic where the figures span a decade.
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass

WIDTH, HEIGHT = 300, 240
ROW_STEP, OFFSET_STEP, TILE_STEP = 22, 13, 26
# Longer names than this stand under each other in a legend, or a phone would not show them.
NARROW = 13
# Names longer than this go on in another line: Vega would cut them off at LABEL pixels. A line more is as high as this.
LINE, LABEL, LINE_STEP = 30, 190, 13
# So few different values on a log axis are marked each, such as the batches of a sweep.
FEW = 6
# Told apart on white and on black; shapes tell series apart without colour.
PALETTE = ("#3b7dd8", "#d1622b", "#2f9e63", "#a05cc9", "#c94f7c", "#8a7a1f", "#1f93a8", "#7c6f64", "#e0484d", "#5b6ee1")
SYMBOLS = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
REGIME_COLOURS = {
    "overhead": "#c94f7c",
    "bandwidth": "#d1962b",
    "latency": "#7a9e5b",
    "mixed": "#7d8794",
    "compute": "#3b7dd8",
}


@dataclass(frozen=True)
class Axis:
    """A field of the rows on an axis, with its title."""

    field: str
    title: str
    log: bool = False


def spans_decades(values: Iterable[float | None]) -> bool:
    """Whether positive figures lie so far apart that a linear axis would hide the small ones."""
    known = [value for value in values if value is not None]
    return bool(known) and min(known) > 0 and max(known) >= 10 * min(known)


def ticks(values: Iterable[float | None]) -> list[float]:
    """Round numbers for a logarithmic axis: 1, 2 and 5 in each decade, or the decades alone where these are many."""
    known = [value for value in values if value]
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    steps = (1, 2, 5) if high - low <= 3 else (1,)
    return [step * 10.0**power for power in range(low, high + 1) for step in steps]


def _number(field: str, **more) -> dict:
    """The encoding of a number."""
    return {"field": field, "type": "quantitative", **more}


def _name(field: str, **more) -> dict:
    """The encoding of a name, without a title."""
    return {"field": field, "type": "nominal", "title": None, **more}


def _once(rows: Iterable[dict], field: str) -> list:
    """The values of a field, each once, in their order."""
    return list(dict.fromkeys(row[field] for row in rows))


def _labels(names: Iterable[str]) -> tuple[dict, int]:
    """What makes an axis or a legend show these names whole, and how high a row of the chart has to be for them."""
    broken = {name: textwrap.wrap(name, LINE) for name in names if len(name) > LINE}
    if not broken:
        return {}, ROW_STEP
    lines_more = max(map(len, broken.values())) - 1
    return {"labelExpr": f"({json.dumps(broken)})[datum.label] || datum.label"}, ROW_STEP + lines_more * LINE_STEP


def _chart(rows: list[dict], **parts) -> dict:
    """The chart with its rows."""
    return {"data": {"values": rows}, **parts}


def coloured(series: Iterable[str], names: list[str]) -> dict:
    """Colour and symbol of every series, the same in all charts that share `names`."""
    own = set(series)
    shown = [name for name in names if name in own]
    places = [names.index(name) for name in shown]
    columns = 1 if max(map(len, shown), default=0) > NARROW else 2
    look = {"orient": "top", "columns": columns, "symbolLimit": 40, "labelLimit": 200}
    legend = {**look, **_labels(shown)[0]} if len(shown) > 1 else None
    ranges = {
        "color": [PALETTE[place % len(PALETTE)] for place in places],
        "shape": [SYMBOLS[place % len(SYMBOLS)] for place in places],
    }
    return {
        channel: _name("series", scale={"domain": shown, "range": found}, legend=legend)
        for channel, found in ranges.items()
    }


def lines(
    rows: list[dict],
    x: Axis,
    y: Axis,
    panel: str | None = None,
    dash: str | None = None,
    names: list[str] | None = None,
) -> dict | None:
    """Lines with points, one colour a `series`; intervals where rows hold `low` and `high`. One picture per `panel`.

    `names` are all series of the page, so that each has one colour. None where there is nothing to draw.
    """
    rows = [row for row in rows if row.get(x.field) is not None and row.get(y.field) is not None]
    if not rows:
        return None

    def scaled(axis: Axis) -> dict:
        if not axis.log:
            return _number(axis.field, title=axis.title, scale={"zero": True})
        # A log axis ends at the data; zero has no logarithm.
        found = sorted({row[axis.field] for row in rows})
        marks = {"values": found if len(found) <= FEW else ticks(found), "format": "~g"}
        return _number(axis.field, title=axis.title, scale={"type": "log", "nice": False, "padding": 8}, axis=marks)

    series = _once(rows, "series")
    base = {"x": scaled(x), "color": coloured(series, names)["color"] if names else _name("series", sort=series)}
    if dash:
        base["strokeDash"] = {"field": dash, "type": "nominal", "legend": {"symbolType": "stroke"}}
    layers = [
        {"mark": {"type": "rule"}, "encoding": base | {"y": _number("low", title=y.title), "y2": {"field": "high"}}},
        {"mark": {"type": "line", "point": True}, "encoding": base | {"y": scaled(y)}},
    ]
    picture = {"layer": layers, "width": WIDTH, "height": HEIGHT}
    return _chart(rows, **(_faceted(panel, picture) if panel else picture))


def _faceted(panel: str, picture: dict) -> dict:
    """One picture for each value of a field."""
    return {"facet": _name(panel), "spec": picture, "columns": 2}


def dots(
    rows: list[dict], title: str, names: list[str], mark: tuple[float, str] | None = None, zero: bool = False
) -> dict | None:
    """Points with intervals along x, a line of the chart for each `row`, side by side where it has several `series`.

    Rows hold `row`, `series`, `value` and, where there is one, the interval `low` to `high`, drawn thin where it says
    nothing of other processes (`thin`). `mark` is a line to compare with: where it lies and what it is called.
    `zero`: a linear axis begins at zero. None without a value.
    """
    rows = [row for row in rows if row.get("value") is not None]
    if not rows:
        return None
    ends = [row.get(name) for row in rows for name in ("value", "low", "high")] + ([mark[0]] if mark else [])
    log = spans_decades(ends)
    scale = {"type": "log", "nice": False, "padding": 12} if log else {"zero": zero, "padding": 12}
    axis = {"values": ticks(ends), "format": "~g"} if log else {"tickCount": 5, "format": ",~f"}
    order, series = _once(rows, "row"), {row["series"] for row in rows}
    several = len(order) < len(rows)
    labels, row_step = _labels(order)
    base = {"y": _name("row", sort=order, axis={"labelLimit": LABEL, **labels})}
    look = coloured(series, names)
    if several:
        base["yOffset"] = {"field": "series", "type": "nominal", "sort": [name for name in names if name in series]}
    else:
        look = {channel: {**encoding, "legend": None} for channel, encoding in look.items()}
    span = {"x": _number("low", title=title, scale=scale), "x2": {"field": "high"}, "color": look["color"]}
    at = {"x": _number("value", title=title, scale=scale, axis=axis), "tooltip": _tooltip(rows, title)}
    width = {"strokeWidth": {"condition": {"test": "datum.thin", "value": 1}, "value": 3}}
    rules = {"mark": {"type": "rule", "opacity": 0.75}, "encoding": base | span | width}
    points = {"mark": {"type": "point", "filled": True, "size": 60, "opacity": 1}, "encoding": base | at | look}
    layers = [rules, points] if any(row.get("low") is not None for row in rows) else [points]
    if mark:
        layers.insert(0, _reference(*mark, scale))
    # A row has a band for each series, and these are as high as the row's name needs.
    step = {"step": max(OFFSET_STEP, row_step / 1.25 / len(series)), "for": "offset"} if several else {"step": row_step}
    return _chart(rows, layer=layers, height=step)


def _reference(value: float, name: str, scale: dict) -> dict:
    """A dashed line at `value`."""
    return {
        "data": {"values": [{"mark": value, "name": name}]},
        "mark": {"type": "rule", "strokeDash": [4, 3], "color": "currentColor", "opacity": 0.7},
        "encoding": {"x": _number("mark", scale=scale), "tooltip": {"field": "name", "type": "nominal"}},
    }


def _tooltip(rows: list[dict], title: str) -> list[dict]:
    shown = {"row": "shape", "series": "mode", "value": title, "low": "interval from", "high": "to"}
    return [
        {"field": name, "title": text, "type": "nominal" if name in ("row", "series") else "quantitative"}
        for name, text in shown.items()
        if any(row.get(name) is not None for row in rows)
    ]


def tiles(rows: list[dict]) -> dict | None:
    """A grid of regimes: rows hold `series`, `column` and `regime`; a missing cell stays blank. None without rows."""
    if not rows:
        return None
    down = _once(rows, "series")
    labels, row_step = _labels(down)
    base = {
        "x": _name("column", sort=_once(rows, "column"), axis={"labelAngle": -40, "orient": "bottom"}),
        "y": _name("series", sort=down, axis={"labelLimit": LABEL, **labels}),
    }
    scale = {"domain": list(REGIME_COLOURS), "range": list(REGIME_COLOURS.values())}
    look = {
        "color": _name("regime", scale=scale, legend={"orient": "top", "columns": 1}),
        "tooltip": [{"field": name, "type": "nominal"} for name in ("series", "column", "regime")],
    }
    boxes = {"mark": {"type": "rect", "stroke": "white", "strokeWidth": 1}, "encoding": base | look}
    letters = {
        "mark": {"type": "text", "color": "white", "fontWeight": "bold"},
        "encoding": base | {"text": {"field": "letter", "type": "nominal"}},
    }
    return _chart(rows, layer=[boxes, letters], height={"step": max(TILE_STEP, row_step)})


def roofline(rows: list[dict], roofs: list[dict], names: list[str]) -> dict | None:
    """Achieved TFLOP/s over intensity, both logarithmic, under the measured roofs.

    `rows` hold `series`, `shape`, `intensity` and `achieved`; `roofs` `name`, `tflops` and `gb_per_s`.
    """
    if not rows:
        return None
    values = [row["intensity"] for row in rows]
    ridges = [1e3 * roof["tflops"] / roof["gb_per_s"] for roof in roofs]
    low, high = min(values + ridges) / 2, max(values + ridges) * 2
    corners = [
        {"roof": roof["name"], "intensity": x, "achieved": min(roof["tflops"], x * roof["gb_per_s"] / 1e3)}
        for roof, ridge in zip(roofs, ridges, strict=True)
        for x in (low, ridge, high)
    ]
    heights = [row["achieved"] for row in [*rows, *corners]]

    def scaled(field: str, title: str, marked: list[float], domain: list[float]) -> dict:
        axis = {"values": ticks(marked), "format": "~g"}
        return _number(field, title=title, scale={"type": "log", "domain": domain}, axis=axis)

    base = {
        "x": scaled("intensity", "intensity, FLOP per byte", [low, high], [low, high]),
        "y": scaled("achieved", "TFLOP/s", heights, [min(heights) / 1.5, max(heights) * 1.5]),
    }
    roof = {"field": "roof", "type": "nominal"}
    ceiling = {
        "data": {"values": corners},
        "mark": {"type": "line", "color": "currentColor", "opacity": 0.6, "strokeDash": [6, 3]},
        "encoding": base | {"detail": roof, "tooltip": roof},
    }
    named = [{"field": name, "type": "nominal"} for name in ("series", "shape")]
    tooltip = [*named, _number("intensity"), _number("achieved")]
    look = {"tooltip": tooltip, **coloured((row["series"] for row in rows), names)}
    points = {"mark": {"type": "point", "filled": True, "size": 55, "opacity": 0.9}, "encoding": base | look}
    return _chart(rows, layer=[ceiling, points], height=HEIGHT)


def shares(rows: list[dict], title: str) -> dict | None:
    """Stacked bars that sum to 100 %: rows hold `series`, `part` and `share`. None where there is nothing to draw."""
    if not rows:
        return None
    parts = _once(rows, "part")
    rows = [row | {"rank": parts.index(row["part"])} for row in rows]
    encoding = {
        "x": _number("share", title=title, stack="normalize", axis={"format": "%"}),
        "y": _name("series", sort=_once(rows, "series")),
        "color": _name("part", sort=parts),
        "order": _number("rank"),  # of the stack, which follows the names otherwise
    }
    return _chart(rows, mark={"type": "bar"}, encoding=encoding, width=2 * WIDTH, height={"step": ROW_STEP})


def bars(rows: list[dict], title: str, panel: str) -> dict | None:
    """Bars side by side: rows hold `series`, `value` and the field `panel`. None where there is nothing to draw."""
    if not rows:
        return None
    names = _once(rows, "series")
    encoding = {
        "x": _number("value", title=title),
        "y": _name("series", sort=names),
        "color": _name("series", sort=names, legend=None),
    }
    bar = {"mark": {"type": "bar"}, "encoding": encoding}
    return _chart(rows, **_faceted(panel, {"layer": [bar], "width": WIDTH}))


def svg(chart: dict) -> str:
    """The chart as SVG."""
    import vl_convert

    view = {"continuousWidth": WIDTH, "continuousHeight": WIDTH}  # of a chart that does not say its size
    return vl_convert.vegalite_to_svg(json.dumps({"config": {"view": view}, **chart}))
